// The rows of a conversation that are in the document, as a value. Nothing here fetches or draws.
import type { Row, Rows } from "./api"

export const chunk = 30 // rows are fetched so many at a time
export const most = 150 // and at most so many are in the document

/** Window is a run of the rows of a conversation: the first is row from of total. */
export type Window = { name: string, from: number, rows: Row[], total: number, leaf: string }

export const windowOf = (r: Rows): Window => ({ name: r.session, from: r.from, rows: r.rows, total: r.total, leaf: r.leaf })
export const endOf = (w: Window) => w.from + w.rows.length
export const hasEnd = (w: Window) => endOf(w) >= w.total
export const has = (w: Window, i: number) => i >= w.from && i < endOf(w)

/** missing says which rows come next at one end, if there are any. */
export function missing(w: Window, down: boolean): { from: number, count: number } | undefined {
  if (down) return hasEnd(w) ? undefined : { from: endOf(w), count: chunk }
  const from = Math.max(0, w.from - chunk)
  return w.from > 0 ? { from, count: w.from - from } : undefined
}

/** grown adds rows at one end, and takes away at the other what is too much. */
export function grown(w: Window, r: Rows, down: boolean): Window {
  const rows = down ? w.rows.concat(r.rows) : r.rows.concat(w.rows), over = Math.max(0, rows.length - most)
  return { ...windowOf(r), from: down ? w.from + over : r.from, rows: down ? rows.slice(over) : rows.slice(0, most) }
}

/** caughtUp is the window after something was appended. If the window has the end of the
 * conversation, r must begin with its last row, which may have changed. Nothing is returned if the
 * conversation went another way. A window that follows the end lets go of its beginning. */
export function caughtUp(w: Window, r: Rows, follows: boolean): Window | undefined {
  if (!hasEnd(w)) return { ...w, total: r.total }
  const last = w.rows.at(-1), [again, ...news] = r.rows
  if (last && again && last.entry.id !== again.entry.id) return undefined
  // A row that looks the same is the same, so that what one has unfolded stays open.
  const rows = w.rows.slice(0, -1).concat(last && again && last.html === again.html && last.label === again.label ? [last, ...news] : r.rows)
  const over = follows ? Math.max(0, rows.length - most) : 0
  return { ...windowOf(r), from: w.from + over, rows: rows.slice(over) }
}

/** shownNear is the row at or before an index that shows something, or else the next one. */
export function shownNear(rows: Row[], i: number): number {
  const from = rows[0]?.index ?? 0
  for (let k = i - from; k >= 0; k--) if (rows[k]?.html) return rows[k].index
  return rows.find((r) => r.html && r.index >= i)?.index ?? i
}

/** stepped is the row that comes after one, or before it, and shows something. It may be outside of
 * the window, where one does not know what rows show. */
export function stepped(w: Window, cur: number, by: 1 | -1): number | undefined {
  let i = (cur < 0 ? w.from : cur) + by
  while (has(w, i) && !w.rows[i - w.from].html) i += by
  return i < 0 || i >= w.total ? undefined : i
}

/** indexOf is the row of an entry, which may be named by the beginning of its id. */
export const indexOf = (r: Rows, at: string): number => r.rows.find((row) => row.entry.id.startsWith(at))?.index ?? r.from
