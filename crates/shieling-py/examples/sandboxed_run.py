"""Run commands of a model in a sandbox, and look at what really happened."""

import tempfile

from shieling import Shieling


def main() -> None:
    with tempfile.TemporaryDirectory() as workspace:
        with Shieling("sandbox", workspace=workspace, deny=["git push"], timeout=30, memory="1GiB") as shieling:
            outcome = shieling.run("echo 'print(6 * 7)' > answer.py && cat answer.py && ls /home")
            print(outcome.status, outcome.exit_code, outcome.stdout.splitlines()[0])
            print("enforced:", ", ".join(outcome.confinement.enforced))

            refused = shieling.run("git push --force")
            if refused.denial is not None:
                print(refused.denial.message())

            slow = shieling.run("echo working; sleep 60", timeout=0.5)
            print(slow.status, slow.stdout.strip(), "survivors:", slow.survivors)


if __name__ == "__main__":
    main()
