// Keeping what one reads where it is on the screen, while rows come and go around it.
import { useRef } from "preact/hooks"
import { hasEnd, type Window } from "./window"

type Box = { current: HTMLElement | null }

/** useHold remembers which row is at the top of a box that scrolls, and puts it back there. One who
 * is at the end of the conversation stays at its end. */
export function useHold(box: Box, inner: Box, win: () => Window | undefined) {
  const st = useRef({ anchor: undefined as { i: number, top: number } | undefined, follows: false, end: 0 }).current

  const articles = () => [...(inner.current?.querySelectorAll<HTMLElement>(":scope > article[data-i]") ?? [])].filter((e) => e.offsetParent)

  /** note remembers where one is, and says whether that is the end. */
  const note = (): boolean => {
    const b = box.current, w = win()
    if (!b) return st.follows
    const top = b.getBoundingClientRect().top
    const atEnd = b.scrollTop + b.clientHeight >= b.scrollHeight - 4
    // What comes late (images, the composer) moves the end, not the person who was there.
    const stays = st.follows && b.scrollTop >= st.end - 1
    st.follows = (atEnd || stays) && !!w && hasEnd(w)
    const seen = articles().find((e) => e.getBoundingClientRect().bottom > top)
    if (seen) st.anchor = { i: Number(seen.dataset.i), top: seen.getBoundingClientRect().top - top }
    return st.follows
  }

  /** put puts the row that was noted back to its place. */
  const put = () => {
    const b = box.current
    if (!b) return
    if (st.follows) {
      b.scrollTop = b.scrollHeight
      st.end = b.scrollTop
      return
    }
    if (!st.anchor) return
    const all = articles(), i = st.anchor.i, e = all.findLast((e) => Number(e.dataset.i) <= i) ?? all[0] // it may be folded away
    if (e) b.scrollTop += e.getBoundingClientRect().top - b.getBoundingClientRect().top - st.anchor.top
  }

  /** begin makes a row the one to hold, or the end. */
  const begin = (i: number, follows: boolean) => { st.anchor = { i, top: 60 }; st.follows = follows }

  /** end goes to the end, and stays there. */
  const end = () => { st.follows = true; put() }

  return { note, put, begin, end, follows: () => st.follows, top: () => st.anchor?.i }
}
