// Runs a program on MicroPython (WebAssembly, in Node):
//
//     node run.mjs [--folder DIR | --disk DIR] [--args JSON] PROGRAM.py
//
// The files of DIR are the program's current folder, and its lib/ is where it imports from, as on a board.
// --folder: a copy in memory. --disk: the real folder, see disk.mjs.
// Then, if the program has defined step(), it is called until it gives None; a number is how many milliseconds to wait.
// Between two calls the network (see link.mjs) is served. `import bridge` gives the network and the --args.
import fs from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";
import { copyIn, mountDisk } from "./disk.mjs";
import { Datagrams, Link } from "./link.mjs";

const PACKAGE = "../../.parts/node_modules/@micropython/micropython-webassembly-pyscript/micropython.mjs";
const PLACE = "/device";

// Synchronous, so that what was printed before a power cut is not lost.
const print = (to) => (text) => fs.writeSync(to, text + "\n");

async function start(options) {
    const { loadMicroPython } = await import(new URL(PACKAGE, import.meta.url));
    const python = await loadMicroPython({ stdout: print(1), stderr: print(2), pystack: 16 * 1024 });
    const FS = python.FS;
    FS.mkdir(PLACE);
    if (options.folder) copyIn(FS, options.folder, PLACE);
    if (options.disk) mountDisk(FS, options.disk, PLACE);
    FS.mkdir("/harness");
    FS.writeFile("/harness/args.json", options.args ?? "{}");
    FS.writeFile("/harness/bridge.py", fs.readFileSync(new URL("programs/bridge.py", import.meta.url)));
    const link = new Link(FS, "/dev/link");
    python.registerJsModule("_link", link.forPython());
    python.registerJsModule("_datagrams", new Datagrams(FS, "/dev/datagrams").forPython());
    python.runPython(`import os, sys\nsys.path[:] = ["", ".frozen", "${PLACE}/lib", "/harness"]\nos.chdir("${PLACE}")`);
    return { python, link };
}

async function loop(step) {
    for (let wait = step(); wait !== null; wait = step()) {
        await new Promise((resolve) => (wait > 0 ? setTimeout(resolve, wait) : setImmediate(resolve)));
    }
}

function fail(error) {
    if (error.name !== "PythonError") throw error;
    if (error.type === "SystemExit") return Number(/SystemExit: (\d+)/.exec(error.message)?.[1] ?? 0);
    print(2)(error.message.trimEnd());
    return 1;
}

const texts = Object.fromEntries(["folder", "disk", "args"].map((name) => [name, { type: "string" }]));
const { values, positionals } = parseArgs({ options: texts, allowPositionals: true });
const { python, link } = await start(values);
let code = 0;
try {
    python.runPython(fs.readFileSync(path.resolve(positionals[0]), "utf8"));
    const step = python.globals.get("step");
    if (step !== undefined) await loop(step);
} catch (error) {
    code = fail(error);
}
await link.end();
process.exit(code);
