"""``make hunt``: a seeded part finds no error, so its references are right, and it finds errors that are put in."""

import operator

import numpy as np
import pytest

import loss_reference
import plrank_fast as plr
import ranking_reference
from error_bounds import of_terms
from hunt import Case, Hunt
from measured_errors import ATTACKS
from plrank_fast import reference
from plrank_fast.off_policy import OffPolicyEstimate

OF_LABELS_AND_LOGS = ("losses", "logs", "rewards", "ties")
OF_RANKINGS = tuple(name for name in ATTACKS if name not in (*OF_LABELS_AND_LOGS, "long", "long given"))


def relatively_wrong(call, factor, place=0):
    """The function with one of its results multiplied; of an estimate from a log the value, or the gradient."""

    def wrong(*arguments, **options):
        result = call(*arguments, **options)
        if isinstance(result, OffPolicyEstimate):
            changes = [("value", "numerators"), ("gradient",)][place]
            vars(result).update({name: factor * getattr(result, name) for name in changes})
            return result
        if isinstance(result, tuple):
            return (*result[:place], factor * result[place], *result[place + 1 :])
        return factor * result

    return wrong


class TestHunt:
    @pytest.mark.parametrize("attacks", [OF_RANKINGS, OF_LABELS_AND_LOGS, ("long",)])
    def test_seeded(self, attacks, capsys):
        """Part of the search, the same every time. Without mutants of its own: the tests below put errors in."""
        hunt = Hunt(0, most_cost=3e5, attacks=attacks, rounds=1)
        hunt.run()
        print(hunt.report())
        assert {worst.case.attack for worst in hunt.worst.values()} == set(attacks)
        assert not hunt.findings

    @pytest.mark.parametrize(
        ("attack", "name", "factor"),
        [
            ("exact", "pl_rank_exact", 1 + 1e-5),
            ("exact", "expected_metric", 1 + 1e-5),
            ("average precision", "expected_ap", 1 + 1e-5),
            ("finer nodes", "pl_rank_exact", 1 + 0.5),
            ("finer nodes", "expected_metric", 1 - 1e-5),
            ("normal", "pl_rank_exact", 1 - 1e-5),
            ("probabilities", "rank_probabilities", 1 + 1e-7),
            ("probabilities", "exposure", 1 + 1e-7),
            ("given", "pl_rank_3", 1 + 1e-10),
            ("long given", "pl_rank_3", 1 + 1e-11),
            ("long", "pl_rank_exact", 1 + 1e-2),
            ("long", "expected_metric", 1 + 1e-2),
            ("given", "pl_rank_1", 1 + 1e-10),
            ("given", "ranking_log_prob_vjp", 1 + 1e-10),
            ("conditional", "pl_rank_cmc", 1 + 1e-10),
            *(("losses", f"losses.{name}", 1 + 1e-10) for name in plr.losses.__all__ if name != "exposure_matching"),
            ("logs", "off_policy.ips", 1 + 1e-10),
            ("logs", "off_policy.rips", 1 + 1e-10),
            ("rewards", "policy_gradient", 1 + 1e-10),
            ("ties", "bucket_log_prob", 1 + 1e-8),
            ("ties", "bucket_log_prob_vjp", 1 + 1e-7),
            ("metrics", "ndcg", 1 + 1e-10),
            ("metrics", "rewards.AlphaNDCG.__call__", 1 + 1e-10),
            ("all rankings", "PlackettLuce.entropy", 1 + 1e-10),
            ("all rankings", "PlackettLuce.kl", 1 + 1e-10),
            ("all rankings", "scores_for_exposure", 1 + 1e-4),
            ("all rankings", "off_policy.iips", 1 + 1e-2),
            ("all rankings", "off_policy.doubly_robust", 1 + 1e-4),
        ],
    )
    def test_finds_an_error(self, attack, name, factor, monkeypatch, capsys):
        owner, _, name = name.rpartition(".")
        module = operator.attrgetter(owner)(plr) if owner else plr
        call, quick = getattr(module, name), attack in OF_LABELS_AND_LOGS
        for place in range(2 if quick and attack != "rewards" else 1):
            monkeypatch.setattr(module, name, relatively_wrong(call, factor, place))
            hunt = Hunt(1, most_cost=1e5, attacks=[attack], rounds=1)
            hunt.most_findings = 1
            hunt.run()
            assert hunt.findings
            assert "BROKEN" in capsys.readouterr().out


class TestFound:
    def test_heavy_item_above_a_light_one(self):
        """Two documents 7 to 11 nats apart in their likely order: the error of the heavy one comes and goes. Mutant: an
        amplification of 1e4 allowed to a single ranking (1.8e-12)."""
        relevance, rank_weights, ranking = np.array([0.03, 1.02]), np.array([1.0, 2.0]), np.array([[1, 0]])
        worst = 0.0
        for gap in np.linspace(7.0, 11.0, 600):
            problem = np.array([0.0, gap]), relevance, rank_weights
            best = ranking_reference.pl_rank(3, *problem, ranking)
            worst = max(worst, of_terms(plr.pl_rank_3(*problem, rankings=ranking), best))
        assert worst <= 1

    def test_relevant_document_far_below(self):
        """ApproxNDCG: nobody near the document is left of its gradient but what comes from those far above. Mutant: its
        own slope, 1/4 at no distance, added and taken off again (1e-17 with another sign, or nothing)."""
        scores, labels = np.array([0.0, 0.5, -40.0, -41.5]), np.array([0.0, 1.0, 2.0, 1.0])
        for part in (slice(0, 3), slice(0, 4)):
            _, best = loss_reference.approx_ndcg(scores[part], labels[part], 0.9)
            assert of_terms(plr.losses.approx_ndcg(scores[part], labels[part], temperature=0.9)[1], best) <= 1

    def test_trapezoid_far_apart(self):
        """Gaps at which the square of w t overflows, where nothing is left of the item; of two documents
        and more the Hessian is as for narrower gaps. Mutant: w t not bounded."""
        scores, relevance = np.array([0.0, 0.3, -0.2, 20.0, 20.5]), np.array([1.0, 0.5, 0.0, 2.0, 1.0])
        near = reference.exact_by_trapezoid(scores, relevance, [1.0, 0.5])
        far = reference.exact_by_trapezoid(scores + np.array([0, 0, 0, 400, 400]), relevance, [1.0, 0.5])
        for got, expected in zip(far, near, strict=True):
            np.testing.assert_allclose(got, expected, rtol=0, atol=1e-7)

    @pytest.mark.parametrize(
        ("attack", "seeds"),
        [
            ("rewards", [202577326]),  # a baseline; gaps of 354 to 600 nats; items without terms
            ("ties", [4673271, 106988634, 1580997735, 1674151438]),  # thousands, all likely
            *(("given", [seed]) for seed in (1485941275, 465599443, 1005201023, 1031101898, 1296593939)),
        ],
    )
    def test_once(self, attack, seeds):
        """Mutants: rewards counted from the first ranking's, beside which a ranking of nearly all the weight has none
        (7.8e6); one unit of weights for up to 600 nats, in which squares are 0 or infinite; terms of samples side by
        side that no ranking uses (-7e-238, -5e-151); times 13 nats apart, between which derivatives lie (4e26)."""
        assert max(Case(attack, tuple(seeds)).measure().values()) <= 1


class TestCommand:
    def test_lines_can_be_measured_again(self, capsys, monkeypatch):
        arguments = ["--rounds", "1", "--minutes", "inf", "--seed", "5", "--most-cost", "2e5", "--attacks", "given"]
        assert Hunt.main(arguments) == 0
        rows = capsys.readouterr().out.splitlines()
        row = next(line for line in rows if " pl_rank_2 " in line)
        assert Hunt.main(["--again", row[row.index("{") :]]) == 0
        shown = capsys.readouterr().out
        assert "rank_weights=array(" in shown
        assert next(line for line in shown.splitlines() if line.endswith("  pl_rank_2")).split()[0] == row.split()[0]
        monkeypatch.setattr(plr, "pl_rank_2", relatively_wrong(plr.pl_rank_2, 1.1))
        assert Hunt.main(["--again", row[row.index("{") :]]) == 1
        assert Hunt.main(arguments) == 1
