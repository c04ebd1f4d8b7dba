"""`rfmdp domains`."""

from rfmdp.cli.main import run as rfmdp
from rfmdp.domains import DOMAINS


def test_domains_on_the_command_line(capsys):
    """`rfmdp domains` lists sizes; of one domain all constants, and the file."""
    assert rfmdp(["domains"]) == 0
    out = capsys.readouterr().out
    assert "21,694,720" in out
    assert all(name in out for name in DOMAINS)
    assert rfmdp(["domains", "chain"]) == 0
    assert "--const M=10,slow=0.4,fast=0.6,as_published=true" in (out := capsys.readouterr().out)
    assert "chain.prism" in out
    assert rfmdp(["domains", "herman"]) == 0
    assert "--const N=11,p=1/3" in capsys.readouterr().out  # an expression, as it is given
    assert rfmdp(["domains", "moon"]) == 1
