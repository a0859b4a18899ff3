import io

from herald.cli import main


def test_names(capsys):
    assert main(["Ada", "Grace"]) == 0
    assert capsys.readouterr().out == "Please welcome Ada.\nPlease welcome Grace.\n"


def test_standard_input(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("Ada\n\nGrace\n"))
    assert main(["-", "--greeting", "Hail"]) == 0
    assert capsys.readouterr().out == "Hail Ada.\nHail Grace.\n"


def test_blank_name(capsys):
    assert main([" "]) == 2
    assert capsys.readouterr().err == "herald: a name is blank\n"
