"""An agent of AG2 that works in the sandbox. The model is scripted, so that the example runs anywhere: give `Agent`
the configuration of a real one instead."""

import asyncio
import json
import tempfile

from ag2 import Agent
from ag2.events import ToolCallEvent
from ag2.testing import TestConfig, TrackingConfig

from shieling.adapters.ag2 import LocalEnvironment, SandboxShellTool


async def main() -> None:
    with tempfile.TemporaryDirectory() as workspace:
        environment = LocalEnvironment(workspace, environment="sandbox")
        shell = SandboxShellTool(environment)
        command = "printf 'beta\\nalpha\\n' > a.txt; sort a.txt | head -1"
        call = ToolCallEvent(name=shell.name, arguments=json.dumps({"command": command}))
        config = TrackingConfig(TestConfig(call, "The first line is alpha."))
        reply = await Agent("worker", config=config, tools=[shell]).ask("What is the first line of a.txt, sorted?")
        told = config.mock.call_args_list[-1].args[0].results
        print("".join(part.content for part in told[0].result.parts))
        print(reply.body)
        await environment.aclose()


if __name__ == "__main__":
    asyncio.run(main())
