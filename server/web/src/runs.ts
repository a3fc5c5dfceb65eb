// Runs of calls of tools, which are folded into a line that says what they did. Nothing here
// fetches or draws.
import type { Row } from "./api"

/** Run is rows that follow each other, and only work: the first and the last index. */
export type Run = { first: number, last: number, rows: Row[], key: string }

const works = (r: Row) => !!r.work && !r.label && !r.others && !r.draft
const isHidden = (r: Row) => !r.html && !r.label && !r.others

/** runsOf finds the runs of some rows: those with at least two calls. */
export function runsOf(rows: Row[]): Run[] {
  const runs: Run[] = []
  for (let i = 0; i < rows.length;) {
    let end = i
    while (end < rows.length && (works(rows[end]) || isHidden(rows[end]))) end++
    const some = rows.slice(i, end), calls = some.reduce((n, r) => n + (r.work?.calls ?? 0), 0)
    const begins = some.find((r) => r.html)
    if (calls > 1 && begins) runs.push({ first: begins.index, last: rows[end - 1].index, rows: some.slice(some.indexOf(begins)), key: begins.entry.id })
    i = Math.max(end, i + 1)
  }
  return runs
}

/** didWords says what the rows of a run did: "Edited 3 files, ran 2 commands". */
export function didWords(rows: Row[]): string {
  const kinds = new Map<string, { verb: string, one: string, many: string, n: number, what: Set<string> }>()
  for (const d of rows.flatMap((r) => r.work?.deeds ?? [])) {
    const key = d.verb + " " + d.one, kind = kinds.get(key) ?? { ...d, n: 0, what: new Set<string>() }
    if (d.what) kind.what.add(d.what)
    else kind.n++
    kinds.set(key, kind)
  }
  const words = [...kinds.values()].map((k) => { const n = k.n + k.what.size; return `${k.verb} ${n} ${n === 1 ? k.one : k.many}` }).join(", ")
  return words.charAt(0).toUpperCase() + words.slice(1)
}

export const failedIn = (rows: Row[]) => rows.reduce((n, r) => n + (r.work?.failed ?? 0), 0)
