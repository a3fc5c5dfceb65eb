// The outline of a conversation: its prompts, compactions and labels, to jump to.
import { useEffect, useState } from "preact/hooks"
import { get, path } from "./api"
import { complain, FixedList, moves, useKeys } from "./ui"

type Mark = { index: number, entry: string, kind: string, text: string }
type Result = { marks: Mark[], total: number, next?: number }

const most = 5000 // marks are fetched so many at a time

/** useMarks fetches the marks, and those of what is appended; busy says that more are on their way. */
function useMarks(id: string, leaf: string, total: number): { marks: Mark[], busy: boolean } {
  const [found, set] = useState<{ marks: Mark[], busy: boolean }>({ marks: [], busy: true })
  useEffect(() => {
    const stop = new AbortController()
    void (async () => {
      const all: Mark[] = []
      for (let from: number | undefined = 0; from !== undefined;) {
        const r: Result = await get<Result>(path`/v1/sessions/${id}/outline`, { leaf, from, limit: most }, stop.signal)
        all.push(...r.marks)
        from = r.next || undefined
        set({ marks: [...all], busy: from !== undefined })
      }
    })().catch((e) => { if (!stop.signal.aborted) complain(e as Error) })
    return () => stop.abort()
  }, [id, leaf, total])
  return found
}

type Props = { id: string, leaf: string, total: number, cur: number, onGo: (i: number) => void, onClose: () => void }

export function Outline({ id, leaf, total, cur, onGo, onClose }: Props) {
  const { marks, busy } = useMarks(id, leaf, total)
  const here = marks.findLastIndex((m) => m.index <= cur)
  const go = (i: number) => { if (marks[i]) onGo(marks[i].index) }
  const keys = moves(here, marks.length, go)
  const keyed = (e: KeyboardEvent) => { if (keys[e.key] && !e.ctrlKey && !e.metaKey && !e.altKey) { e.preventDefault(); e.stopPropagation(); keys[e.key]() } }
  useKeys({ Escape: onClose })
  return <nav class="outline" aria-label="Outline" aria-busy={busy} onKeyDown={keyed}>
    <FixedList label="outline" count={marks.length} height={30} cur={here} at={(i) => marks[i]} need={nothing} onCur={go}
      row={(m) => m && <div class={"mark " + m.kind} dir="auto">{m.text}</div>} />
  </nav>
}
const nothing = () => {}
