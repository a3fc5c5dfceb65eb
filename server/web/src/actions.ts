// What can be done with a conversation, by one key each.
import { del, path, post, put, type Session } from "./api"
import { complain, copy, go, type Keys, say } from "./ui"

export function sessionKeys(id: string, s?: Session): Keys {
  return {
    t: () => go(path`/s/${id}/tree`), x: () => go(path`/s/${id}/context`), o: () => go(path`/s/${id}/share`), X: () => go(path`/s/${id}/share`), i: () => go(path`/s/${id}/images`),
    y: () => copy(location.origin + path`/s/${id}`, "a link to the conversation"),
    R: () => rename(id, s?.title ?? ""), T: () => tag(id), s: () => pin(id, !s?.pinned), v: () => rate(id), r: () => copy(`coppice resume ${id}`, "the command that resumes it"), f: () => fork(id), Delete: () => trash(id, s?.title ?? id),
  }
}

export async function rename(id: string, was: string) {
  const name = prompt("The name of this conversation:", was)
  if (name) await put(path`/v1/sessions/${id}/name`, { name }).then(() => say("renamed"), complain)
}

export async function tag(id: string) {
  const text = prompt("Tags to add, and with a minus those to remove:")
  if (!text) return
  const words = text.split(/[\s,]+/).filter(Boolean)
  await post(path`/v1/sessions/${id}/tags`, { add: words.filter((w) => !w.startsWith("-")), remove: words.filter((w) => w.startsWith("-")).map((w) => w.slice(1)) }).then(() => say("tagged"), complain)
}

export const pin = (id: string, pinned: boolean) => put(path`/v1/sessions/${id}/pin`, { pinned }).then(() => say(pinned ? "pinned" : "unpinned"), complain)

export async function rate(id: string) {
  const rating = prompt("good or bad? Empty takes the rating back.")
  if (rating !== null) await put(path`/v1/sessions/${id}/rating`, rating ? { rating } : {}).then(() => say("rated"), complain)
}

export const fork = (id: string, entry?: string) =>
  post<{ session: string }>(path`/v1/sessions/${id}/fork`, entry ? { at: entry } : {}).then((r) => { say("forked"); go(path`/s/${r.session}`) }, complain)

export async function trash(id: string, title: string) {
  if (!confirm(`Move “${title}” to the trash? coppice trash restore brings it back.`)) return
  await del(path`/v1/sessions/${id}`).then(() => { say("moved to the trash"); go("/") }, complain)
}
