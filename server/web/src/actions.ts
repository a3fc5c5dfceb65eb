// What can be done with conversations, by one key each, as in the terminal UI. What can be undone
// does not ask first.
import { bytes, del, get, path, post, put, type Session } from "./api"
import { ask, choose } from "./dialogs"
import { changed } from "./live"
import { complain, copy, counted, go, type Keys, linkTo, placeOf, say } from "./ui"

/** Undo takes something back. */
type Undo = () => Promise<unknown>

const undos: { what: string, undo: Undo }[] = []

/** done says what was done, and remembers how to take it back. */
export function done(what: string, undo?: Undo) {
  if (undo) undos.push({ what, undo })
  changed()
  say(what, undo && undoLast)
}

export function undoLast() {
  const last = undos.pop()
  if (!last) { say("nothing was done here that can be undone"); return }
  last.undo().then(() => { changed(); say("undone: " + last.what) }, complain)
}

const about = (id: string) => get<Session>(path`/v1/sessions/${id}`)

const called = (all: Session[]) => all.length === 1 ? "“" + (shortened(all[0].title) || "untitled") + "”" : counted(all.length, "session")
const shortened = (title: string) => { const c = [...title.replace(/\s+/g, " ").trim()]; return c.length > 40 ? c.slice(0, 39).join("") + "…" : c.join("") }

/** each does something to sessions one after the other, and collects what takes it back. If one
 * fails, what was done before can still be taken back. */
async function each(ids: string[], what: (first: Session) => string, act: (s: Session, first: Session) => Promise<Undo | undefined>) {
  const all: Session[] = [], back: Undo[] = []
  let failed = ""
  for (const id of ids) {
    try {
      const s = await about(id), undo = await act(s, all[0] ?? s)
      all.push(s)
      if (undo) back.unshift(undo)
    } catch (e) {
      if (!all.length) { complain(e as Error); return }
      failed = `, and then: ${(e as Error).message}`
      break
    }
  }
  done(`${what(all[0])} ${called(all)}${failed}`, back.length ? async () => { for (const undo of back) await undo() } : undefined)
}

export async function rename(id: string) {
  try {
    const was = await about(id), name = await ask("Rename to", was.title)
    if (name === undefined || name === was.title) return
    const as = (name: string) => put(path`/v1/sessions/${id}/name`, { name })
    await each([id], () => "renamed", async (s) => { await as(name); return () => as(s.named ? s.title : "") })
  } catch (e) {
    complain(e as Error)
  }
}

/** tagsBack gives a session the tags that it had. */
const tagsBack = (was: Session): Undo => async () => {
  const now = await about(was.id)
  return post(path`/v1/sessions/${was.id}/tags`, { add: was.tags.filter((t) => !now.tags.includes(t)), remove: now.tags.filter((t) => !was.tags.includes(t)) })
}

const isEditable = (tag: string) => !tag.includes(",") && !/^[-+]/.test(tag)

/** tag changes the tags of a session, which can be edited, or adds and removes some of several. */
export async function tag(ids: string[]) {
  try {
    const had = ids.length === 1 ? (await about(ids[0])).tags.filter(isEditable) : []
    const text = await ask("Tags", had.join(", "), ids.length === 1 ? "separated by commas" : "separated by commas; -word removes one")
    if (text === undefined) return
    const words = text.split(",").map((w) => w.trim()).filter(Boolean), gone = words.filter((w) => w.startsWith("-")).map((w) => w.slice(1))
    const wanted = words.filter((w) => !w.startsWith("-")).map((w) => w.replace(/^\+/, ""))
    const add = wanted.filter((w) => !had.includes(w)), remove = had.filter((w) => !wanted.includes(w)).concat(gone)
    if (add.length + remove.length) await each(ids, () => "tagged", async (s) => { await post(path`/v1/sessions/${s.id}/tags`, { add, remove }); return tagsBack(s) })
  } catch (e) {
    complain(e as Error)
  }
}

export const pin = (ids: string[]) => {
  const to = (id: string, pinned: boolean) => put<{ changed: boolean }>(path`/v1/sessions/${id}/pin`, { pinned })
  return each(ids, (first) => first.pinned ? "unpinned" : "pinned", async (s, first) =>
    (await to(s.id, !first.pinned)).changed ? () => to(s.id, first.pinned) : undefined)
}

export async function rate(ids: string[]) {
  const words: Record<string, string> = { good: "rated good:", bad: "rated bad:", "": "took back the rating of" }
  const rating = await choose("Rate", [["g", "good", "good"], ["b", "bad", "bad"], ["n", "no rating", ""]])
  if (rating === undefined) return
  await each(ids, () => words[rating], async (s) => { // a rating is a tag
    const r = await put<{ entry?: string }>(path`/v1/sessions/${s.id}/rating`, rating ? { rating } : {})
    return r.entry ? tagsBack(s) : undefined
  })
}

export async function fork(id: string, entry?: string) {
  await each([id], () => "forked", async () => {
    const made = await post<{ session: string }>(path`/v1/sessions/${id}/fork`, entry ? { at: entry } : {})
    go(path`/s/${made.session}`)
    return async () => { await del(path`/v1/sessions/${made.session}`, { link: true }); go(path`/s/${id}`) }
  })
}

export const trash = (ids: string[]) => each(ids, () => "moved to the trash:", async (s) => {
  const gone = await del<{ removals: string[] }>(path`/v1/sessions/${s.id}`)
  if (placeOf(location).parts[1] === s.id) go("/")
  return () => post(path`/v1/trash/${gone.removals[0]}/restore`, {})
})

/** copyMarkdown copies a whole conversation. */
export const copyMarkdown = (id: string) => bytes(path`/v1/sessions/${id}/export`, { format: "md" }).then((b) => b.text()).then((text) => copy(text, "the conversation as Markdown"), complain)

/** sessionKeys are the keys of all views that are about conversations: the marked ones, or the
 * selected one. Those that write are there if that is allowed. */
export function sessionKeys(ids: string[], may: boolean): Keys {
  if (!ids.length) return {}
  const [id] = ids, only = (f: () => unknown) => () => { if (ids.length > 1) say(`it takes one session, and ${ids.length} are marked`); else void f() }
  const writing: Keys = {
    R: only(() => rename(id)), T: () => void tag(ids), s: () => void pin(ids), v: () => void rate(ids), f: only(() => fork(id)),
    Delete: () => void trash(ids), "#": () => void trash(ids),
  }
  return {
    t: only(() => go(path`/s/${id}/tree`)), x: only(() => go(path`/s/${id}/context`)), o: only(() => go(path`/s/${id}/share`)), X: only(() => go(path`/s/${id}/share`)), i: only(() => go(path`/s/${id}/images`)), w: only(() => go(path`/s/${id}/picture`)),
    y: () => void (ids.length > 1 ? copy(ids.join("\n"), counted(ids.length, "id")) : copy(linkTo(path`/s/${id}`), "a link to the conversation")),
    Y: only(() => copyMarkdown(id)),
    r: only(() => copy(`coppice resume ${id}`, "the command that resumes it")), ...(may ? writing : {}),
  }
}

const offered: [key: string, name: string][] = [["R", "rename"], ["T", "tag"], ["s", "pin"], ["v", "rate"], ["f", "fork"], ["r", "copy the resume command"], ["y", "copy a link"], ["Y", "copy as Markdown"], ["o", "export"], ["X", "redact"], ["#", "trash"]]
const forSeveral = ["T", "s", "v", "y", "#"]

/** sessionActions offers them by name, for those who have no keyboard. */
export async function sessionActions(ids: string[], may: boolean) {
  const keys = sessionKeys(ids, may)
  const key = await choose(ids.length > 1 ? counted(ids.length, "session") : "This conversation", offered.filter(([key]) => key in keys && (ids.length === 1 || forSeveral.includes(key))).map(([key, name]) => [key, name, key]))
  if (key) keys[key]()
}
