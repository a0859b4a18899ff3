with open("weights.bin", "wb") as file:
    file.truncate(192 * 2**20)
