"""The page, the Markdown and the run that `bertcli evaluate -o` writes."""

import re
from itertools import combinations
from pathlib import Path

from helpers.json_files import read_json, write_json_lines
from helpers.terminal import bertcli
from wings.evaluate.test_tasks import judged

from bertcli.report.charts import LETTER, Curve, drawn

DATA = Path(__file__).parents[2] / "data"
REVIEWS = DATA / "reviews.csv"


def test_the_page_draws_intervals_confusion_reliability_and_the_worst(tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    assert bertcli("evaluate", REVIEWS, "-o", file, "--by", "about").status == 0
    page = file.read_text()
    assert 'aria-label="0.83 [0.68, 0.91]"' in page
    assert 'x1="68.05" x2="91.25"' in page, "the interval of the accuracy as a line"
    assert 'cx="82.50"' in page
    assert '<td data-name="from 0 to 1"><svg viewBox="-3 0 106 14" class="strip"' in page, "drawn, and not as text"
    assert "&lt;svg" not in page
    assert "true labels down, predicted ones across" in page
    assert "reliability diagram" in page
    assert ">mean confidence →<" in page
    assert ">↑ accuracy; the numbers count texts<" in page
    assert "What the figures are" in page
    assert '<th scope="row">film</th><td data-name="Figure">accuracy</td>' in page
    assert "No complaints, and that happens seldom." in page
    interval = page.index("the model's true accuracy on all texts of this kind may plausibly have")
    of_groups = page.index('<th scope="row">product</th><td data-name="Figure">accuracy@90%</td>')
    assert interval < of_groups < page.index("No interval for ece"), "what is missing, below what is there"
    assert page.count("No interval for ece") == 4
    assert "<script" not in page


def test_the_page_names_models_and_file_and_shows_what_a_matrix_shows_once(tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    assert bertcli("evaluate", REVIEWS, "-o", file).status == 0
    page = file.read_text()
    assert "<h1>Evaluation: classification on reviews.csv</h1>" in page
    assert '<p class="about">bert-mini-sentiment</p>' in page
    assert "Found as" not in page, "the confusion matrix beside it shows it"
    assert '<th scope="row">line 29</th>' in page, "the file's name stands in the title"
    footer = page.partition("<footer>")[2]
    assert "measured on these texts" in footer
    assert "Neither shows whether" in footer


def test_figures_with_one_meaning_share_their_line(tmp_path: Path) -> None:
    data, file = tmp_path / "data.jsonl", tmp_path / "report.html"
    lines = [{"text": "She poured a cup of hot [MASK].", "word": word} for word in ("tea", "water", "milk")]
    write_json_lines(data, lines)
    assert bertcli("evaluate", data, "-o", file).status == 0
    explained = file.read_text().partition("What the figures are")[2].partition("</table>")[0]
    assert explained.count("accuracy@") == 1
    assert '<th scope="row">accuracy@K</th>' in explained


def test_counts_beside_points_do_not_overlap() -> None:
    points = [(0.2, 0.0), (0.24, 0.09), (0.28, 0.11), (0.29, 0.1), (0.99, 0.99)]
    counts = ["10", "164", "66", "1,204", "3"]
    picture = drawn(
        Curve("reliability", "confidence", "accuracy", points, notes=[f"{count} texts" for count in counts])
    )
    boxes = []
    for x, y, text in re.findall(r'<text x="([-.\d]+)" y="([-.\d]+)">([\d,]+)</text>', picture):
        assert text in counts
        left, base = float(x), float(y)
        boxes.append((left, base - 4, left + LETTER * len(text), base))
    assert len(boxes) == 5
    for a, b in combinations(boxes, 2):
        assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]


def test_the_page_escapes_texts(tmp_path: Path) -> None:
    data, file = tmp_path / "data.csv", tmp_path / "report.html"
    data.write_text("text,label\nI loved <b>it</b>.,negative\nBad <script>x</script>,negative\n")
    assert bertcli("evaluate", data, "-o", file).status == 0
    assert "I loved &lt;b&gt;it&lt;/b&gt;." in file.read_text()
    assert "<script>" not in file.read_text()


def test_markdown_and_csv_hold_the_figures(tmp_path: Path) -> None:
    card, figures = tmp_path / "card.md", tmp_path / "figures.csv"
    assert bertcli("evaluate", REVIEWS, "-o", card).status == 0
    assert "| accuracy | 0.83 | [0.68, 0.91] | 40 |" in card.read_text()
    assert bertcli("evaluate", REVIEWS, "-o", figures).status == 0
    header, first, *rest = figures.read_text().splitlines()
    assert header == "model,group,metric,value,low,high,n,reason"
    assert first.startswith("bert-mini-sentiment,,accuracy,0.825,0.6805")
    assert first.endswith(",40,")
    (ece,) = [row for row in rest if ",ece," in row]
    assert ',,,40,"bins of few texts read too high' in ece


def test_an_unknown_ending_is_refused_before_any_work(tmp_path: Path) -> None:
    left = bertcli("evaluate", "missing.csv", "-o", tmp_path / "x.docx")
    endings = ".json, .jsonl, .csv, .tsv, .md, .parquet, .html, .pdf, .svg, .png, .trec"
    assert f"the ending must be one of {endings}" in left.error


def test_a_run_is_of_rankings_only(tmp_path: Path) -> None:
    assert (
        "A run (.trec) is written of retrieval and rank"
        in bertcli("evaluate", REVIEWS, "-o", tmp_path / "x.trec").error
    )


def test_the_file_holds_the_same_record_as_standard_output(tmp_path: Path) -> None:
    file = tmp_path / "record.json"
    assert bertcli("evaluate", REVIEWS, "-o", file).status == 0
    written, printed = read_json(file), judged(REVIEWS)
    for record in (written, printed):
        assert record["provenance"].pop("command").startswith(f"bertcli evaluate {REVIEWS} ")
        assert record["provenance"].pop("date").endswith("Z")
    assert written == printed
