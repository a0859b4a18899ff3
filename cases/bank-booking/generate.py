"""Write a year of bank lines of one made-up company, booked, with the defects of real tables.

    python cases/bank-booking/generate.py && modelbench import cases/bank-booking/bank.csv \
        --name bank-booking --id voucher --input date --input amount --input text \
        --expected contra_account --expected tax_key

264 lines of 30 counterparties. Planted: a voucher number twice, one transaction on two accounts,
a line left unbooked. The importer certifies the other 259.
"""

from __future__ import annotations

import csv
import datetime
import random
from pathlib import Path

HERE = Path(__file__).parent
SEED = 2025
LINES = 264
COLUMNS = ("voucher", "date", "amount", "text", "contra_account", "tax_key")

ACCOUNTS = {
    "0420": "Office equipment above 800 net (asset)",
    "0480": "Small assets up to 800 net",
    "1200": "Bank",
    "1400": "Trade receivables",
    "1600": "Trade payables",
    "1740": "Wages payable",
    "1741": "Wage tax payable",
    "1742": "Social security payable",
    "1780": "VAT prepayments",
    "1800": "Private drawings",
    "2100": "Interest expense",
    "2650": "Interest income",
    "4210": "Rent",
    "4240": "Electricity, gas, water",
    "4250": "Cleaning",
    "4360": "Insurance",
    "4380": "Contributions and fees",
    "4530": "Vehicle running costs",
    "4540": "Vehicle repairs",
    "4610": "Advertising",
    "4650": "Entertainment",
    "4660": "Travel of employees",
    "4910": "Postage",
    "4920": "Telephone and internet",
    "4930": "Office supplies",
    "4940": "Books and periodicals",
    "4950": "Legal and consulting",
    "4964": "Software licences",
    "4970": "Bank charges",
    "8400": "Revenue at 19 %",
    "8300": "Revenue at 7 %",
    "8125": "Revenue, supplies within the EU",
}
TAX_KEYS = {
    "0": "No VAT: payroll, taxes, insurance, interest, bank charges, settlement of booked invoices",
    "3": "Output VAT 19 %",
    "2": "Output VAT 7 %",
    "9": "Input VAT 19 %",
    "8": "Input VAT 7 %",
    "94": "Reverse charge: services from abroad, 19 %",
    "11": "Supply within the EU, free of VAT",
}

# Counterparty, texts with their account and tax key, least and greatest amount, lines a year.
Booking = tuple[str, str, str]
PARTIES: tuple[tuple[str, tuple[Booking, ...], float, float, int], ...] = (
    ("Hansa Immobilien KG", (("Rent workshop {month}", "4210", "9"),), -2380, -2380, 12),
    ("Stadtwerke Falkenau", (("Electricity instalment {month}", "4240", "9"),), -460, -380, 12),
    ("Payroll run", (("Wages {month}", "1740", "0"),), -16900, -14200, 12),
    ("Tax office Falkenau", (("Wage tax {month}", "1741", "0"),
                             ("VAT prepayment {month}", "1780", "0")), -4900, -1700, 18),
    ("Health fund AKB", (("Social security {month}", "1742", "0"),), -5900, -5100, 12),
    ("Telnova", (("Line and mobile {month}", "4920", "9"),), -189, -121, 12),
    ("Cloudhaven Ltd, Dublin", (("Hosting {month}, reverse charge", "4964", "94"),), -320, -88, 12),
    ("Letterbox Post AG", (("Stamps, exempt universal service {n}", "4910", "0"),
                           ("Parcels business {n}", "4910", "9")), -140, -18, 10),
    ("Papier Brandt", (("Paper and toner, order {n}", "4930", "9"),
                       ("Office chair, order {n}, 340 net", "0480", "9")), -405, -24, 10),
    ("Möbelhaus Werra", (("Conference table, invoice {n}, 1,150 net", "0420", "9"),),
     -1369, -1368, 2),
    ("Bookshop Lindner", (("Trade journal {n}", "4940", "8"),), -92, -16, 6),
    ("Fuel station Nordring", (("Diesel, card {n}", "4530", "9"),), -118, -47, 14),
    ("Garage Petersen", (("Inspection van, invoice {n}", "4540", "9"),), -890, -160, 4),
    ("Rail AG", (("Ticket employee trip {n}", "4660", "8"),), -189, -29, 7),
    ("Hotel am Markt", (("Night employee trip {n}, breakfast apart", "4660", "8"),), -240, -79, 4),
    ("Trattoria Aurora", (("Meal with customer, receipt {n}", "4650", "9"),), -186, -38, 6),
    ("Allsecure Insurance", (("Liability insurance quarter {n}", "4360", "0"),), -412, -398, 4),
    ("Chamber of Commerce", (("Membership fee {n}", "4380", "0"),), -310, -290, 2),
    ("Steuerbüro Kranz", (("Bookkeeping {month}", "4950", "9"),), -540, -410, 12),
    ("Glanz Cleaning", (("Cleaning {month}", "4250", "9"),), -357, -297, 12),
    ("Adlight Media", (("Advertisement, order {n}", "4610", "9"),), -980, -240, 6),
    ("Pixelforge Inc., Austin", (("Design seats {n}, reverse charge", "4964", "94"),),
     -130, -45, 6),
    ("House bank", (("Account charges quarter {n}", "4970", "0"),
                    ("Loan interest quarter {n}", "2100", "0"),
                    ("Credit interest quarter {n}", "2650", "0")), -96, -11, 12),
    ("Weber Metallbau GmbH", (("Payment of invoice {n}", "1400", "0"),), 900, 7800, 12),
    ("Kita Sonnenschein", (("Payment of invoice {n}", "1400", "0"),), 240, 1600, 8),
    ("Counter sales", (("Card receipts, goods 19 %, batch {n}", "8400", "3"),
                       ("Card receipts, books 7 %, batch {n}", "8300", "2")), 180, 1900, 12),
    ("Atelier Dubois, Lyon", (("Supply within EU, invoice {n}, VAT id given", "8125", "11"),),
     650, 4200, 6),
    ("Schraubenhandel Otto", (("Our payment of your invoice {n}", "1600", "0"),), -2900, -210, 8),
    ("Holz Import Lund", (("Our payment of your invoice {n}", "1600", "0"),), -6100, -900, 6),
    ("Owner", (("Private drawing {n}", "1800", "0"),), -2500, -800, 4),
)  # fmt: skip
assert sum(party[4] for party in PARTIES) == LINES - 1  # one more is the second of a pair


def lines() -> list[list[str]]:
    """Return the table without its header, sorted by date, the same at every call."""
    rng = random.Random(SEED)
    found: list[tuple[datetime.date, str, str, str, str]] = []
    for name, bookings, least, greatest, count in PARTIES:
        for number in range(count):
            day = datetime.date(2025, 1 + number * 12 // count, rng.randint(1, 28))
            text, account, key = bookings[number % len(bookings)]
            told = text.format(month=day.strftime("%m/2025"), n=rng.randint(10_000, 99_999))
            amount = rng.uniform(least, greatest)
            if "Credit interest" in text:
                amount = -amount
            found.append((day, f"{amount:.2f}", f"{name}: {told}", account, key))
    found.sort()
    table = [
        [f"B{number:04d}", day.isoformat(), amount, text, account, key]
        for number, (day, amount, text, account, key) in enumerate(found, 1)
    ]
    table[88][0] = table[87][0]  # the voucher number twice
    twice = next(row for row in table if "Advertisement" in row[3])
    table.insert(table.index(twice) + 1, [f"B{LINES:04d}", *twice[1:4], "4930", "9"])
    unbooked = next(row for row in table[150:] if "Garage" in row[3])
    unbooked[4] = unbooked[5] = ""
    return table


def write(folder: Path) -> None:
    """Write the table and the two shared files."""
    rows = (
        ("bank.csv", COLUMNS, lines()),
        ("shared/accounts.csv", ("account", "name"), ACCOUNTS.items()),
        ("shared/tax_keys.csv", ("key", "meaning"), TAX_KEYS.items()),
    )
    (folder / "shared").mkdir(exist_ok=True)
    for name, header, body in rows:
        with (folder / name).open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(header)
            writer.writerows(body)


if __name__ == "__main__":
    write(HERE)
