"""Documents of campaigns: what is put down once stands in Markdown and in HTML."""

from rfmdp.paper.document import ColumnGroup, Document


def made():
    """Return a document with one part of each kind."""
    found = Document("Runs & results")
    found.bullets([])
    found.bullets(["one < two"])
    found.heading("Tables")
    found.table(
        [ColumnGroup("", ("method",)), ColumnGroup("to 0.5", ("ours", "paper"))],
        [["flat", "1", "2"]],
    )
    found.picture(b"<?xml?><svg><g/></svg>", "curves.png", "Curves")
    return found


def test_markdown_has_letters_for_groups():
    """Titles of groups stand above the table; an empty list leaves nothing."""
    assert made().markdown() == (
        "# Runs & results\n\n- one < two\n\n## Tables\n\nA: to 0.5.\n\n"
        "| method | A: ours | A: paper |\n|---|---|---|\n| flat | 1 | 2 |\n\n"
        "![Curves](curves.png)\n"
    )


def test_html_is_escaped_and_complete():
    """Groups have a line of titles of their own, figures stand inside the page."""
    page = made().html()
    assert "<title>Runs &amp; results</title>" in page
    assert "<ul><li>one &lt; two</li></ul>" in page
    assert '<th colspan="2" class="group">to 0.5</th>' in page
    assert '<th scope="row">flat</th><td class="group">1</td><td>2</td>' in page
    assert '<figure role="img" aria-label="Curves"><svg><g/></svg></figure>' in page
    assert page.endswith("</body></html>\n")
