// A folder of the real disk inside MicroPython, with power cuts that are worse than a kill -9 alone.
//
// A program works on a copy in memory. Flushed data is on the real disk when flush returns, and so are renames and
// removals; written data that was not flushed is lost when the process is killed.
//
// With `cut` the process kills itself after writing that many bytes, even in the middle of a write. Truncating a file
// before rewriting it, a rename and a removal count as one byte each.
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

export function mountDisk(FS, real, place, cut) {
    copyIn(FS, real, place);
    const disk = new Disk(cut);
    const outside = (inside) => (inside.startsWith(place + "/") ? path.join(real, inside.slice(place.length)) : null);
    FS.writeFile("/tmp/any", "");
    const files = FS.lookupPath("/tmp/any").node.stream_ops; // one table of functions serves all files,
    const folders = FS.lookupPath(place).node.node_ops; // and one all folders
    files.fsync = (stream) => {
        const inside = FS.getPath(stream.node);
        const to = outside(inside);
        if (to) disk.write(to, FS.readFile(inside));
        return 0;
    };
    const { rename, unlink } = folders;
    folders.rename = (node, folder, name) => {
        const [from, to] = [outside(FS.getPath(node)), outside(FS.getPath(folder) + "/" + name)];
        if (from && to) disk.rename(from, to);
        rename(node, folder, name);
    };
    folders.unlink = (folder, name) => {
        const gone = outside(FS.getPath(folder) + "/" + name);
        if (gone) disk.remove(gone);
        unlink(folder, name);
    };
}

class Disk {
    constructor(cut) {
        this.left = cut;
    }

    // Bytes that may still be written; if they are fewer than requested, they are the last.
    spend(bytes) {
        const allowed = Math.min(bytes, this.left);
        this.left -= allowed;
        return allowed;
    }

    failIf(short) {
        if (short) process.kill(process.pid, "SIGKILL");
    }

    write(to, data) {
        const before = fs.existsSync(to) ? fs.readFileSync(to) : null;
        if (before?.equals(data)) return;
        const longer = before !== null && before.length > 0 && before.equals(data.subarray(0, before.length));
        if (!longer) this.failIf(this.spend(1) < 1);
        fs.mkdirSync(path.dirname(to), { recursive: true });
        const file = fs.openSync(to, longer ? "a" : "w");
        const rest = longer ? data.subarray(before.length) : data;
        const some = this.spend(rest.length);
        fs.writeSync(file, rest, 0, some);
        fs.fsyncSync(file);
        fs.closeSync(file);
        if (before === null) syncFolder(to);
        this.failIf(some < rest.length);
    }

    // The name moves together with the data flushed under it, if any.
    rename(from, to) {
        this.failIf(this.spend(1) < 1);
        if (!fs.existsSync(from)) fs.writeFileSync(from, "");
        fs.renameSync(from, to);
        syncFolder(to);
    }

    remove(gone) {
        this.failIf(this.spend(1) < 1);
        fs.rmSync(gone, { force: true });
        syncFolder(gone);
    }
}

function syncFolder(file) {
    const folder = fs.openSync(path.dirname(file), "r");
    fs.fsyncSync(folder);
    fs.closeSync(folder);
}
