"""An agent of GAIA that works in the sandbox. The model is scripted, so that the example runs anywhere: leave out
`chat` and `skip_lemonade` for the real one."""

import json
import os
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from gaia.agents.base.agent import Agent

from shieling.adapters.gaia import ShellToolsMixin


class Worker(ShellToolsMixin, Agent):
    def _register_tools(self) -> None:
        self.register_shell_tools()

    def _get_system_prompt(self) -> str:
        return "You run commands."

    def confirm_tool_execution(self, tool_name: str, tool_args: dict[str, Any]) -> bool:
        return True


def scripted(*answers: dict[str, Any]) -> Any:
    script = iter(answers)

    def send_messages(*_: Any, messages: Any, **__: Any) -> Any:
        if len(messages) > 1:
            print(messages[-1]["content"])
        text = json.dumps(next(script))
        return SimpleNamespace(text=text, stats={}, finish_reason="stop", reasoning=None, tool_calls=None)

    return SimpleNamespace(send_messages=send_messages, get_stats=dict, llm_client=None)


def main() -> None:
    with tempfile.TemporaryDirectory() as workspace:
        os.chdir(workspace)
        Path("a.txt").write_text("beta\nalpha\n")
        agent = Worker(skip_lemonade=True, silent_mode=True, shell_environment="sandbox")
        agent.console.confirm_tool_execution = agent.confirm_tool_execution
        agent.streaming = False
        agent.chat = scripted(
            {"tool": "run_shell_command", "tool_args": {"command": "sort a.txt | head -1"}},
            {"answer": "The first line is alpha."},
        )
        result = agent.process_query("What is the first line of a.txt, sorted?", max_steps=3)
        print(result["result"])
        os.chdir("/")


if __name__ == "__main__":
    main()
