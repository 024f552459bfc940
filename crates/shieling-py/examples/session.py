"""A shell that stays, a server in the background of it, and a program that is talked to."""

import tempfile

from shieling import Shieling


def main() -> None:
    with tempfile.TemporaryDirectory() as workspace, Shieling("sandbox", workspace=workspace) as shieling:
        session = shieling.session("build")
        session.run("mkdir -p project && cd project && export STAGE=test")
        print(session.run("echo $STAGE in $(basename $PWD)").stdout.strip())

        job = session.background("echo listening; while read -r line; do echo \"served $line\"; done")
        matched, _ = job.wait_for(pattern="listening", timeout=10)
        view = job.write("a request", enter=True, wait=5)
        print(matched, view.outcome.stdout.strip())
        print(job.kill().status)

        with shieling.start("tr a-z A-Z") as program:
            program.write("talked to\n")
            program.close_stdin()
            print(program.stdout.readline().decode().strip())


if __name__ == "__main__":
    main()
