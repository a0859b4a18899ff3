def test_the_setting(solution):
    assert solution.load("settings").MAX_RETRIES == 5


def test_the_others_are_kept(solution):
    settings = solution.load("settings")
    assert (settings.HOST, settings.PORT) == ("mail.example.org", 587)
    assert settings.MAX_ATTACHMENTS == 3
    assert settings.RETRY_SECONDS == 30
    assert settings.SIGNATURE == "Kind regards,\nthe club"
