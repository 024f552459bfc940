"""A mirror of a few packages, made in the current directory: pip, npm, cargo, apt, and git over HTTP.

`mirror.py ADDRESS [tls]` prints its port. Everything is also there below `/private`, for whom has the secret in the
variable `VALUE`. `got` has a line for each request: its path and its `Authorization`.
"""

import base64, gzip, hashlib, http.server, io, json, os, ssl, subprocess, sys, tarfile, zipfile

VALUE = os.environ["VALUE"]


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())


def tgz(files):
    """An archive with these files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))
    return buffer.getvalue()


def pip():
    wheel = io.BytesIO()
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in {
            "tiny.py": "word = 'from pip'\n",
            "tiny-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n",
            "tiny-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            "tiny-1.0.dist-info/RECORD": "tiny.py,,\n",
        }.items():
            archive.writestr(name, text)
    write("www/simple/tiny/tiny-1.0-py3-none-any.whl", wheel.getvalue())


def npm():
    package = {"name": "tiny", "version": "1.0.0", "main": "index.js"}
    archive = tgz({"package/package.json": json.dumps(package), "package/index.js": "module.exports = 'from npm'\n"})
    write("www/npm/-/tiny-1.0.0.tgz", archive)
    sum = base64.b64encode(hashlib.sha512(archive).digest()).decode()
    dist = {"tarball": "BASE/npm/-/tiny-1.0.0.tgz", "integrity": "sha512-" + sum}
    versions = {"1.0.0": {**package, "dist": dist}}
    write("www/npm/tiny", json.dumps({"name": "tiny", "dist-tags": {"latest": "1.0.0"}, "versions": versions}))


def cargo():
    manifest = '[package]\nname = "tiny"\nversion = "1.0.0"\nedition = "2021"\n'
    crate = tgz({"tiny-1.0.0/Cargo.toml": manifest, "tiny-1.0.0/src/lib.rs": "// from cargo\n"})
    write("www/cargo/crates/tiny-1.0.0.crate", crate)
    write("www/cargo/config.json", json.dumps({"dl": "BASE/cargo/crates/{crate}-{version}.crate"}))
    line = {"name": "tiny", "vers": "1.0.0", "deps": [], "features": {}, "yanked": False}
    write("www/cargo/ti/ny/tiny", json.dumps({**line, "cksum": hashlib.sha256(crate).hexdigest()}) + "\n")


def apt():
    write("deb/DEBIAN/control", "Package: tiny\nVersion: 1.0\nArchitecture: all\nMaintainer: a <a@b>\nDescription: tiny\n")
    write("deb/usr/share/tiny/word", "from apt\n")
    os.makedirs("www/apt")
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", "deb", "www/apt/tiny.deb"], check=True, stdout=2)
    with open("www/apt/tiny.deb", "rb") as file:
        deb = file.read()
    with open("deb/DEBIAN/control") as file:
        control = file.read()
    sum = hashlib.sha256(deb).hexdigest()
    packages = f"{control}Filename: ./tiny.deb\nSize: {len(deb)}\nSHA256: {sum}\n".encode()
    write("www/apt/Packages", packages)
    sum = hashlib.sha256(packages).hexdigest()
    write("www/apt/Release", f"SHA256:\n {sum} {len(packages)} Packages\n")


def git():
    def run(*words):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], check=True, stdout=2)

    run("init", "-q", "-b", "main", "one")
    write("one/word", "from git\n")
    run("-C", "one", "add", "word")
    run("-C", "one", "commit", "-qm", "first")
    run("clone", "-q", "--bare", "one", "git/tiny.git")
    run("-C", "git/tiny.git", "config", "http.receivepack", "true")


class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, *words):
        super().__init__(*words, directory="www")

    def serve(self):
        authorization = self.headers.get("Authorization", "-")
        with open("got", "a") as file:
            file.write(f"{self.path} {authorization}\n")
        base = f"{SCHEME}://{self.headers['Host']}"
        if self.path.startswith("/private/"):
            self.path = self.path[len("/private") :]
            base += "/private"
            known = ["Bearer " + VALUE, "Basic " + base64.b64encode(f"me:{VALUE}".encode()).decode()]
            if authorization not in known:
                return self.reply("401 Unauthorized", b"", {"WWW-Authenticate": "Basic realm=x"})
        if self.path.startswith("/git/"):
            return self.backend()
        path = "www" + self.path
        if os.path.isfile(path) and not path.endswith((".whl", ".tgz", ".crate", ".deb")):
            with open(path) as file:
                text = file.read().replace("BASE", base)
            if base.endswith("/private") and path == "www/cargo/config.json":
                text = json.dumps({**json.loads(text), "auth-required": True})
            return self.reply("200 OK", text.encode())
        super().do_GET()

    do_GET = do_POST = serve

    def reply(self, status, body, headers={}):
        code, reason = status.split(" ", 1)
        self.send_response(int(code), reason)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def body(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def backend(self):
        path, _, query = self.path.removeprefix("/git").partition("?")
        body = self.body()
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        variables = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": os.path.abspath("git"),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
        }
        done = subprocess.run(["git", "http-backend"], input=body, env=variables, stdout=subprocess.PIPE)
        head, _, body = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        self.reply(headers.pop("Status", "200 OK"), body, headers)

    def log_message(self, *words):
        pass


write("www/word", "from the mirror\n")
for make in (pip, npm, cargo, apt, git):
    make()
SCHEME = "https" if sys.argv[2:] else "http"
server = http.server.ThreadingHTTPServer((sys.argv[1], 0), Handler)
if sys.argv[2:]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain("cert.pem", "key.pem")
    # The handshake is the thread's, so that a client that breaks it off holds up nobody.
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
print(server.server_address[1], flush=True)
server.serve_forever()
