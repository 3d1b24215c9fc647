// A folder of the real disk inside MicroPython, where a kill is worse than a kill -9 alone.
//
// A program works on a copy in memory. Flushed data is on the real disk when flush returns, and so are renames and
// removals; written data that was not flushed is lost when the process is killed.
import fs from "node:fs";
import path from "node:path";

export function copyIn(FS, real, place) {
    for (const entry of fs.readdirSync(real, { withFileTypes: true })) {
        const [from, to] = [path.join(real, entry.name), place + "/" + entry.name];
        if (entry.isDirectory()) {
            FS.mkdirTree(to);
            copyIn(FS, from, to);
        } else {
            FS.writeFile(to, fs.readFileSync(from));
        }
    }
}

export function mountDisk(FS, real, place) {
    copyIn(FS, real, place);
    const outside = (inside) => (inside.startsWith(place + "/") ? path.join(real, inside.slice(place.length)) : null);
    FS.writeFile("/tmp/any", "");
    const files = FS.lookupPath("/tmp/any").node.stream_ops; // one table of functions serves all files,
    const folders = FS.lookupPath(place).node.node_ops; // and one all folders
    files.fsync = (stream) => {
        const inside = FS.getPath(stream.node);
        const to = outside(inside);
        if (to) write(to, FS.readFile(inside));
        return 0;
    };
    const { rename: move, unlink } = folders;
    folders.rename = (node, folder, name) => {
        const [from, to] = [outside(FS.getPath(node)), outside(FS.getPath(folder) + "/" + name)];
        if (from && to) rename(from, to);
        move(node, folder, name);
    };
    folders.unlink = (folder, name) => {
        const gone = outside(FS.getPath(folder) + "/" + name);
        if (gone) remove(gone);
        unlink(folder, name);
    };
}

function write(to, data) {
    const before = fs.existsSync(to) ? fs.readFileSync(to) : null;
    if (before?.equals(data)) return;
    fs.mkdirSync(path.dirname(to), { recursive: true });
    const longer = before !== null && before.length > 0 && before.equals(data.subarray(0, before.length));
    const file = fs.openSync(to, longer ? "a" : "w");
    fs.writeSync(file, longer ? data.subarray(before.length) : data);
    fs.fsyncSync(file);
    fs.closeSync(file);
    if (before === null) syncFolder(to);
}

// The name moves together with the data flushed under it, if any.
function rename(from, to) {
    if (!fs.existsSync(from)) fs.writeFileSync(from, "");
    fs.renameSync(from, to);
    syncFolder(to);
}

function remove(gone) {
    fs.rmSync(gone, { force: true });
    syncFolder(gone);
}

function syncFolder(file) {
    const folder = fs.openSync(path.dirname(file), "r");
    fs.fsyncSync(folder);
    fs.closeSync(folder);
}
