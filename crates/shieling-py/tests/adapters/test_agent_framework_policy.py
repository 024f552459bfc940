"""`ShellPolicy` of the adapter for Microsoft's agent framework, with and without `regex`."""

from __future__ import annotations

import re
from typing import Any

import pytest

from shieling.adapters.agent_framework import ShellDecision, ShellPolicy, ShellRequest, _policy


@pytest.fixture(params=["regex", "re"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The engine of texts: the package `regex` if it is there, or `re` in a child process."""
    if request.param == "re":
        monkeypatch.setattr(_policy, "regex", None)
    elif _policy.regex is None:
        pytest.skip("the package `regex` is not installed")
    return str(request.param)


def decide(command: str, **keywords: Any) -> tuple[str, str]:
    decision = ShellPolicy(**keywords).evaluate(ShellRequest(command))
    return decision.decision, decision.reason


def test_records_are_positional() -> None:
    assert ShellRequest("ls", "/tmp") == ShellRequest(command="ls", workdir="/tmp")
    assert ShellDecision("deny", "why") == ShellDecision(decision="deny", reason="why")
    assert ShellDecision("allow").reason == "" and ShellRequest("ls").workdir is None


def test_nothing_is_denied_by_default_but_an_empty_command() -> None:
    assert decide("rm -rf /") == ("allow", "")
    assert decide(" \n") == ("deny", "command is empty")
    assert ShellPolicy().evaluate_command("ls") == ShellDecision("allow")


def test_the_deny_list_goes_before_the_allow_list(engine: str) -> None:
    assert decide("git push", denylist=["push"], allowlist=["^git"]) == (
        "deny",
        "matches denylist pattern: push",
    )
    assert decide("git log", denylist=["push"], allowlist=["^git"]) == ("allow", "")


def test_a_list_without_entries_allows_nothing() -> None:
    assert decide("ls", allowlist=[]) == ("deny", "command does not match allowlist")


def test_texts_have_no_case_and_compiled_patterns_their_own(engine: str) -> None:
    assert decide("RM -RF /", denylist=[r"\brm\b"])[0] == "deny"
    assert decide("RM -RF /", denylist=[re.compile(r"\brm\b")])[0] == "allow"


def test_a_function_has_the_last_word() -> None:
    seen: list[ShellRequest] = []

    def custom(request: ShellRequest) -> ShellDecision | None:
        seen.append(request)
        return ShellDecision("deny", "mine") if "x" in request.command else None

    assert decide("echo x", custom=custom) == ("deny", "mine")
    assert decide("echo y", custom=custom) == ("allow", "")
    assert decide("echo y", custom=custom, denylist=["echo"])[0] == "deny"
    assert [request.command for request in seen] == ["echo x", "echo y"]


def test_a_pattern_that_takes_too_long_denies(
    engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_policy, "_PATTERN_MATCH_TIMEOUT_SECONDS", 0.01)
    slow = r"(.*),(.*),(.*),(.*)\1\2z"
    command = "echo " + "," * 120
    assert decide(command, denylist=[slow]) == (
        "deny",
        f"denylist pattern could not be evaluated in time: {slow}",
    )
    assert decide(command, allowlist=[slow])[0] == "deny"


@pytest.mark.parametrize(
    "command",
    [
        "ls; id",
        "ls\nid",
        "ls & id",
        "ls | id",
        "echo $(id)",
        "echo `id`",
        "(ls; id)",
        "ls && { id; }",
        "echo a > file",
        "ls >> file",
        "ECHO hi",
        "ls <(id)",
        "ls 'open",
        "if true; then echo a; fi; id",
    ],
)
def test_m20_an_allow_list_names_every_command(engine: str, command: str) -> None:
    assert decide(command, allowlist=[r"^echo\b", r"^ls\b"]) == (
        "deny",
        "command does not match allowlist",
    )


@pytest.mark.parametrize(
    "command",
    ["ls -la", "echo 'a; b'", "ls 2>/dev/null", "ls && echo done", "for i in 1 2; do echo $i; done" , "echo \"$HOME\""],
)
def test_an_allow_list_lets_pass_what_it_names(engine: str, command: str) -> None:
    assert decide(command, allowlist=[r"^echo\b", r"^ls\b", r"^for .*"]) == ("allow", "")


def test_a_pattern_for_the_whole_text_allows_it_as_it_stands(engine: str) -> None:
    assert decide("ls > out.txt", allowlist=["^ls > out.txt$"]) == ("allow", "")
    assert decide('git commit -m "a b"', allowlist=[r'^git commit -m "[^"]*"']) == ("allow", "")


@pytest.mark.parametrize(
    "command",
    [r"r\m -rf /", "/bin/rm -rf /", "true\nrm -rf /", "bash -c 'rm -rf /'", "eval 'rm  -rf /'", "'rm' -rf /", "env rm -rf /"],
)
def test_a_deny_list_sees_the_command_behind_its_spelling(engine: str, command: str) -> None:
    assert decide(command, denylist=[r"^rm\s+-rf\s+/"])[0] == "deny"


def test_a_compiled_pattern_keeps_its_flags() -> None:
    assert decide("ECHO hi", allowlist=[re.compile("^ECHO")])[0] == "allow"
    assert decide("echo hi", allowlist=[re.compile("^ECHO")])[0] == "deny"
