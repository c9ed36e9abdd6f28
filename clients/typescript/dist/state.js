import { StateError } from "./errors.js";
const KIND = "tickwire-state";
const VERSION = 1;
/**
 * Where streams are: pass it to `watch`, `orderFlow` and `follow…`. It moves with each frame that your program receives. One state serves
 * one stream of each kind.
 */
export class State {
    streams = new Map();
    saving = Promise.resolve();
    /** A new one if there is no such file. Throws a StateError if the file is damaged or is not a state. */
    static async load(path) {
        const { readFile } = await files();
        let text;
        try {
            text = await readFile(path, "utf8");
        }
        catch (failure) {
            if (failure.code === "ENOENT")
                return new State();
            throw failure;
        }
        return State.from(text, path);
    }
    /** Where there are no files: from the text that `JSON.stringify(state)` made. */
    static from(text, name = "The text") {
        const damaged = `${name} is damaged, or is not the state of a Tickwire client.`;
        const state = new State();
        try {
            const body = JSON.parse(text);
            if (body.kind === KIND && body.version !== VERSION) {
                throw new StateError(`${name} is of version ${body.version}; this client reads ${VERSION}.`);
            }
            if (body.kind !== KIND)
                throw new StateError(damaged);
            for (const [stream, { places = {}, since }] of Object.entries(body.streams)) {
                for (const [key, { epoch, seq, time }] of Object.entries(places)) {
                    if (typeof epoch !== "string" || !Number.isInteger(seq) || !Number.isInteger(time))
                        throw new StateError(damaged);
                    state.move(stream, key, { epoch, seq, time });
                }
                if (since !== undefined)
                    state.moveSince(stream, String(since));
            }
        }
        catch (failure) {
            throw failure instanceof StateError ? failure : new StateError(damaged, { cause: failure });
        }
        return state;
    }
    /** Atomically: a program that is killed meanwhile leaves the old file whole. */
    save(path) {
        const text = JSON.stringify(this);
        const write = async () => {
            const { open, rename, rm } = await files();
            const beside = `${path}.${Math.random().toString(36).slice(2)}.tmp`;
            try {
                const file = await open(beside, "w", 0o600);
                try {
                    await file.writeFile(text);
                    await file.sync();
                }
                finally {
                    await file.close();
                }
                await rename(beside, path);
            }
            catch (failure) {
                await rm(beside, { force: true });
                throw failure;
            }
        };
        // One after the other, so that an older state never replaces a newer one.
        return (this.saving = this.saving.catch(() => { }).then(write));
    }
    places(stream) {
        return new Map(this.streams.get(stream)?.places);
    }
    move(stream, key, place) {
        const { places } = this.known(stream);
        if (place)
            places.set(key, place);
        else
            places.delete(key);
    }
    since(stream) {
        return this.streams.get(stream)?.since;
    }
    moveSince(stream, since) {
        this.known(stream).since = since;
    }
    toJSON() {
        const streams = [...this.streams].map(([stream, { places, since }]) => [
            stream,
            { ...(places.size && { places: Object.fromEntries(places) }), ...(since !== undefined && { since }) },
        ]);
        return { kind: KIND, version: VERSION, streams: Object.fromEntries(streams) };
    }
    known(stream) {
        let known = this.streams.get(stream);
        if (!known)
            this.streams.set(stream, (known = { places: new Map(), since: undefined }));
        return known;
    }
}
/** Browsers have none. A name that the compiler does not see needs no types of Node. */
function files() {
    const name = "node:fs/promises";
    return import(name);
}
