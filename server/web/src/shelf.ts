// A list of conversations of which only some pages are in memory, in the groups and the order of
// the server. Below one that was unfolded come those that came from it.
import { useMemo, useState } from "preact/hooks"
import { get, type Session } from "./api"
import { complain, useAsked, usePages } from "./ui"

/** Asking is what a list answers. */
export type Asking = { filter: string, sort: string, byProject: boolean, withEmpty: boolean }

type Row = Session & { group?: string }
export type Shelved = { s: Row, depth: number, first: boolean }

const pageSize = 100, mostBelow = 1000

type Rows = { rows: Row[], count: number, counted: boolean, cut: boolean, unknown?: Unknown[] }
export type Unknown = { filter: string, value: string, did_you_mean?: string[], known?: string[] }

/** localTime is the time here with the offset of the time zone, which says when a day begins. */
function localTime(): string {
  const now = new Date(), east = -now.getTimezoneOffset(), two = (n: number) => String(Math.floor(n)).padStart(2, "0")
  return new Date(+now + east * 6e4).toISOString().slice(0, 19) + (east < 0 ? "-" : "+") + two(Math.abs(east) / 60) + ":" + two(Math.abs(east) % 60)
}

export function useShelf(q: Asking) {
  const on = [q.filter, q.sort, q.byProject, q.withEmpty], question = on.join("\n")
  const list = (more: Record<string, number | boolean>, signal?: AbortSignal) =>
    get<Rows>("/v1/shelf", { filter: q.filter, sort: q.sort, by_project: q.byProject, empty: q.withEmpty, cost: true, now: localTime(), ...more }, signal)
  const [answer, setAnswer] = useState<{ to: string, rows: Rows }>()
  const found = answer?.to === question ? answer.rows : undefined
  const pages = usePages<Row>(pageSize, async (from, limit, signal) => {
    const r = await list({ from, limit }, signal)
    if (from === 0) setAnswer({ to: question, rows: r })
    return { total: r.counted ? r.count : undefined, rows: r.rows }
  }, on)
  // All of them have to be looked at to count them, so that is asked only if the list has changed.
  const first = found?.rows.map((s) => s.id).sort().join(), known = !found || found.counted
  const size = useAsked(async (signal) => known ? undefined : (await list({ limit: 1, total: true }, signal)).count, [...on, first, known])
  const total = known ? pages.total : Math.max(size.value ?? 0, pages.total)
  const [open, setOpen] = useState(new Map<string, Session[]>())

  /** spots are where rows come in that belong to the one before. */
  const spots = useMemo(() => {
    const out: { at: number, rows: Shelved[] }[] = []
    if (!open.size) return out
    const below = (id: string, depth: number, above: string[]): Shelved[] => above.includes(id) ? [] :
      (open.get(id) ?? []).flatMap((s) => [{ s, depth, first: false }, ...below(s.id, depth + 1, [...above, id])])
    for (const [at, s] of pages.kept()) if (open.has(s.id)) out.push({ at, rows: below(s.id, 1, []) })
    return out.sort((a, b) => a.at - b.at)
  }, [open, pages.n])

  const unfolded = spots.reduce((n, s) => n + s.rows.length, 0), count = total + unfolded
  const at = (i: number): Shelved | undefined => {
    for (const spot of spots) {
      if (i <= spot.at) break
      i -= spot.rows.length
      if (i <= spot.at) return spot.rows[i + spot.rows.length - spot.at - 1]
    }
    const s = pages.at(i)
    return s && { s, depth: 0, first: s.group !== pages.at(i - 1)?.group }
  }
  return {
    /** isAnswered is whether the rows are those of the question, and not still those of the one before. */
    isAnswered: found !== undefined,
    count, at, total, cut: found?.cut ?? false, ready: pages.ready, error: pages.error, unknown: found?.unknown, n: pages.n,
    isOpen: (id: string) => open.has(id),
    need: (from: number, to: number) => pages.need(Math.max(0, from - unfolded), Math.min(total, to)), // what is unfolded only moves rows down
    /** fold shows or hides what came from a conversation. */
    fold: (s: Session) => {
      if (open.has(s.id)) { setOpen(new Map([...open].filter(([id]) => id !== s.id))); return }
      if (!s.forks && !s.subagents) return
      get<{ sessions: Session[] }>("/v1/sessions", { parent: s.id, limit: mostBelow }).then((r) => setOpen(new Map(open).set(s.id, r.sessions)), complain)
    },
    renew: pages.renew,
  }
}
