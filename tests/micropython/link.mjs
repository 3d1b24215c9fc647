// A TCP or TLS connection and datagrams for MicroPython, which has no sockets in its WebAssembly form.
//
// Bytes cross through a character device of the in-memory file system: a read or a write there copies them between
// Node's buffers and MicroPython's memory, exactly. The usual ways do not: a JavaScript array arrives as an object that
// has no bytes, a text ends at its first zero, and an integer is cut to 32 bits.
import dgram from "node:dgram";
import net from "node:net";
import tls from "node:tls";

const NOT_CONNECTED = 53; // ENOTCONN, as MicroPython's libc numbers it

export class Link {
    constructor(FS, device) {
        this.socket = null;
        this.arrived = [];
        this.state = "closed";
        this.reason = "";
        const number = FS.makedev(64, 0);
        FS.registerDevice(number, {
            open: (stream) => {
                stream.seekable = false;
            },
            read: (_stream, memory, offset, length) => this.read(memory, offset, length),
            write: (_stream, memory, offset, length) => {
                if (this.state !== "open") throw new FS.ErrnoError(NOT_CONNECTED);
                this.socket.write(Buffer.from(memory.slice(offset, offset + length).buffer));
                return length;
            },
        });
        FS.mkdev(device, 0o666, number);
    }

    forPython() {
        return {
            connect: (host, port, secure, ca) => this.connect(host, port, secure, ca),
            close: () => this.socket?.end(),
            state: () => this.state,
            reason: () => this.reason,
        };
    }

    connect(host, port, secure, ca) {
        this.socket?.destroy();
        this.arrived = [];
        this.state = "opening";
        this.reason = "";
        const options = { host, port, autoSelectFamily: true };
        if (secure && !net.isIP(host)) options.servername = host;
        const socket = secure ? tls.connect({ ...options, ca: ca ?? undefined }) : net.connect(options);
        this.socket = socket;
        const now = (action) => (value) => this.socket === socket && action(value); // a replaced socket is ignored
        socket.setNoDelay(true);
        socket.on(secure ? "secureConnect" : "connect", now(() => (this.state = "open")));
        socket.on("data", now((data) => this.arrived.push(data)));
        socket.on("error", now((error) => (this.reason = error.code ?? error.message)));
        socket.on("close", now(() => (this.state = "closed")));
    }

    read(memory, offset, length) {
        let done = 0;
        while (done < length && this.arrived.length) {
            const part = this.arrived[0].subarray(0, length - done);
            memory.set(new Int8Array(part.buffer, part.byteOffset, part.length), offset + done);
            done += part.length;
            if (part.length < this.arrived[0].length) this.arrived[0] = this.arrived[0].subarray(part.length);
            else this.arrived.shift();
        }
        return done;
    }

    // Lets pending data go out, for a limited time.
    async end() {
        if (this.state === "closed") return;
        const closed = new Promise((resolve) => this.socket.once("close", resolve));
        this.socket.end();
        const late = new Promise((resolve) => setTimeout(resolve, 2000));
        await Promise.race([closed, late]);
    }
}

export class Datagrams {
    constructor(FS, device) {
        this.socket = null;
        this.waiting = []; // sent before the socket is connected
        this.arrived = [];
        this.between = false; // a read ends after each datagram
        const number = FS.makedev(64, 1);
        FS.registerDevice(number, {
            open: (stream) => {
                stream.seekable = false;
            },
            read: (_stream, memory, offset, length) => this.read(memory, offset, length),
            write: (_stream, memory, offset, length) => {
                const data = Buffer.from(memory.slice(offset, offset + length).buffer);
                if (this.waiting) this.waiting.push(data);
                else this.socket.send(data);
                return length;
            },
        });
        FS.mkdev(device, 0o666, number);
    }

    forPython() {
        return { open: (host, port) => this.open(host, port) };
    }

    open(host, port) {
        this.socket?.close();
        const socket = dgram.createSocket("udp4");
        this.socket = socket;
        this.waiting = [];
        socket.on("message", (data) => this.socket === socket && this.arrived.push(data));
        socket.on("error", () => {});
        socket.connect(port, host, () => {
            for (const data of this.waiting) socket.send(data);
            this.waiting = null;
        });
    }

    read(memory, offset, length) {
        this.between = !this.between && this.arrived.length > 0;
        if (!this.between) return 0;
        const data = this.arrived.shift().subarray(0, length);
        memory.set(new Int8Array(data.buffer, data.byteOffset, data.length), offset);
        return data.length;
    }
}
