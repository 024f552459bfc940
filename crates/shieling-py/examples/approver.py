"""Ask before what cannot be undone: a function of yours says yes or no, with all that is known of the command."""

import asyncio

from shieling import Answer, AsyncShieling, No, Question, Yes


async def approver(question: Question) -> Answer:
    # A real one would ask a person, in a chat or a terminal.
    await asyncio.sleep(0)
    writes = [effect.object for effect in question.verdict.effects if effect.kind == "writes"]
    if any(name.endswith(".lock") for name in writes):
        return No("lock files are changed by their tools only")
    return Yes("exact", uses=5, seconds=600)


async def main() -> None:
    async with AsyncShieling("memory", approval="always", approver=approver) as shieling:
        print((await shieling.run("echo one > notes.txt")).status)
        refused = await shieling.run("echo x > poetry.lock")
        if refused.denial is not None:
            print(refused.status, refused.denial.message())


if __name__ == "__main__":
    asyncio.run(main())
