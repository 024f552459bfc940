"""The official Python client at work with a server: `official.py MODE PROGRAM ARGUMENTS...`.

MODE is the client's: `legacy` begins with `initialize`, `auto` finds the newest version out. Prints what a
person would want to know of each answer, which is the same in every run.
"""
import json
import re
import sys

import anyio
from mcp import Client, MCPError, StdioServerParameters
from mcp.types import ElicitResult

# What of an outcome tells how a command ended.
FACTS = ["status", "exit_code", "session", "session_restarted", "truncated", "job", "survivors"]


def say(*words):
    print(re.sub(r"\b\d+ ms\b", "[N] ms", " ".join(map(str, words))).rstrip(), flush=True)


async def person(_context, asked):
    question = asked.message
    if "decision" in asked.requested_schema["properties"]:
        content = {"decision": "no" if "declined" in question else "yes"}
    else:
        content = {"answer": "a person is"}
    say("  asked:", "\n         ".join(question.splitlines()))
    say("  the person says", json.dumps(content))
    return ElicitResult(action="accept", content=content)


class Work:
    def __init__(self, client):
        self.client = client

    async def call(self, tool, quiet=False, **arguments):
        say(f"── {tool} {json.dumps(arguments)}")
        result = await self.client.call_tool(tool, arguments)
        facts = result.structured_content or {}
        if not quiet:
            text = "".join(part.text for part in result.content if part.type == "text")
            say("  " + text.rstrip("\n").replace("\n", "\n  "))
        told = {name: facts[name] for name in FACTS if facts.get(name) not in (None, False)}
        say("  =", json.dumps(told), "(an error)" if result.is_error else "")
        return facts

    async def wait(self, job, mark):
        """Views it until its output has the mark."""
        seen, cursor = "", 0
        with anyio.fail_after(20):
            while mark not in seen:
                view = await self.client.call_tool("shell_view", {"job": job, "cursor": cursor, "wait_ms": 1000})
                facts = view.structured_content
                seen, cursor = seen + facts["stdout"], facts["cursor"]
        say(f"── job {job} wrote {mark!r}")


async def main():
    mode, program, *arguments = sys.argv[1:]
    server = StdioServerParameters(command=program, args=arguments)
    async with Client(server, mode=mode, elicitation_callback=person) as client:
        work = Work(client)
        say("served by", client.server_info.name, "in version", client.protocol_version)
        say("told:", client.instructions.split(" (")[0])
        tools = (await client.list_tools()).tools
        for tool in tools:
            hints = tool.annotations
            kind = "reads" if hints.read_only_hint else "destroys" if hints.destructive_hint else "writes"
            say(f"  {tool.name} ({kind}): {', '.join(tool.input_schema['properties'])}")

        say("\n# a session keeps its state, and tells how commands end")
        await work.call("shell", command="mkdir sub; cd sub; x=3; echo out; echo err >&2")
        await work.call("shell", command="basename $PWD; echo $x; false")
        await work.call("shell", command="exit 5")
        await work.call("shell", command="echo 'a fresh process'", session="")

        say("\n# approvals")
        await work.call("shell", command="touch approved")
        await work.call("shell", command="touch declined")
        await work.call("shell", command="ls sub", session="")
        await work.call("shell", command="rm -rf /nonexistent")

        say("\n# a call that is cancelled leaves nothing, and the session goes on")
        with anyio.move_on_after(1.5) as scope:
            await client.call_tool("shell", {"command": "y=4; sleep 1000; touch too-late"})
        say("cancelled:", scope.cancelled_caught)
        await work.call("shell", command="echo y=$y; pgrep -P $$ -c sleep")

        say("\n# files, as commands see them")
        facts = await work.call("write_file", path="src/a.rs", content="fn main() {\n    one();\n}\n")
        await work.call("read_file", path="src/a.rs", offset=1, limit=1)
        await work.call("edit_file", path="src/a.rs", old="one()", new="two()", hash=facts["hash"])
        await work.call("edit_file", path="src/a.rs", old="one()", new="two()")
        await work.call("edit_file", path="src/a.rs", old="two()", new="three()", hash=facts["hash"])
        await work.call("shell", command="cat src/a.rs", session="")
        await work.call("ls", path="src")
        await work.call("glob", pattern="*.rs")
        await work.call("grep", pattern=r"two\(", path="src")
        await work.call("read_file", path="../../etc/passwd")
        await work.call("read_file", path="src/a.rs", offset=-1)
        image = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNoAAAAggCBd81ytgAAAABJRU5ErkJggg=="
        await work.call("write_file", path="dot", content=image, encoding="base64")
        shown = await client.call_tool("read_file", {"path": "dot"})
        say("content:", [part.type for part in shown.content], shown.content[1].mime_type, shown.content[1].data == image)

        say("\n# a job, viewed, written to and killed")
        await work.call("shell", command="echo ready; while read l; do echo got $l; done", background=True, job="reader")
        await work.wait("reader", "ready\n")
        await work.call("shell_write", job="reader", text="a line", wait_ms=5000)
        listed = (await client.call_tool("shell_list", {})).structured_content
        say("jobs:", [(job["job"], job["status"]) for job in listed["jobs"]])
        say("sessions:", [session["session"] for session in listed["sessions"]])
        await work.call("shell_kill", job="reader")
        await work.call("shell", command="sleep 1000", timeout_ms=200, on_timeout="kill")
        await work.call("shell", command="sleep 1000", timeout_ms=200, job="late")
        await work.call("shell_kill", job="late")

        say("\n# a terminal, as a person would see it")
        # The echo is off before the size is there to be seen: a key that comes before `read` is not drawn either.
        draw = "printf 'first\\rFIRST\\n'; stty -echo; stty size; read -rsn1 key; echo key=$key; sleep 1000"
        await work.call("shell", quiet=True, command=draw, tty=True, background=True, job="screen", rows=5, columns=30)
        await work.wait("screen", "5 30")
        await work.call("shell_write", quiet=True, job="screen", text="k", enter=False, wait_ms=5000)
        await work.wait("screen", "key=k")
        view = (await client.call_tool("shell_view", {"job": "screen", "screen": True})).structured_content
        say("\n".join("  | " + line for line in view["screen"]["text"].rstrip().splitlines()))
        await work.call("shell_kill", quiet=True, job="screen")

        say("\n# whole outputs and logs are resources")
        facts = await work.call("shell", quiet=True, command="seq 100000")
        templates = (await client.list_resource_templates()).resource_templates
        say("templates:", [template.uri_template for template in templates])
        # Jobs that a call has made by itself have names that it gave itself.
        listed = [resource.uri for resource in (await client.list_resources()).resources]
        say("listed:", sorted(uri for uri in map(str, listed) if uri.split("/")[-1] in ("reader", "screen")))
        uri, whole = f"shieling://output/{facts['output_id']}", ""
        while uri:
            content = (await client.read_resource(uri)).contents[0]
            whole += content.text
            uri = (content.meta or {}).get("shieling/next")
        say("whole:", whole == "".join(f"{n}\n" for n in range(1, 100001)))
        log = (await client.read_resource("shieling://job/reader")).contents[0].text
        say("log of reader:", repr(log))

        say("\n# what is wrong is told")
        for name, doing in [
            ("a tool", client.call_tool("no_such_tool", {})),
            ("an address", client.read_resource("shieling://job/nobody")),
        ]:
            try:
                await doing
                say(name, "was not refused")
            except MCPError as error:
                say(f"{name}: {error.error.message}")
        await work.call("shell", cmd="ls")
        await work.call("ask_human", prompt="are you there?")


anyio.run(main)
