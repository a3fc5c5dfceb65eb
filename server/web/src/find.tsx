// Finding in a conversation: the box to type in, and the marks in the text.
import { useEffect, useRef } from "preact/hooks"

type FinderProps = { text: string, onText: (text?: string) => void, onSeek: (back: boolean) => void, focus: boolean }

export function Finder({ text, onText, onSeek, focus }: FinderProps) {
  const input = useRef<HTMLInputElement>(null)
  useEffect(() => { if (focus) input.current?.focus() }, [])
  return <form class="find" role="search" onSubmit={(e) => { e.preventDefault(); onSeek(false); (document.activeElement as HTMLElement)?.blur() }}>
    <input ref={input} id="find" type="search" value={text} onInput={(e) => onText(e.currentTarget.value)} aria-label="Find in this conversation" placeholder="Find in this conversation" />
    <button title="Previous (N)" type="button" onClick={() => onSeek(true)}>↑</button><button title="Next (n)">↓</button>
    <button type="button" onClick={() => onText(undefined)} aria-label="Close">✕</button></form>
}

/** useHighlights marks what is looked for, without changing the document. */
export function useHighlights(inner: { current: HTMLElement | null }, text: string | undefined, win: unknown) {
  useEffect(() => {
    const marks = (CSS as any).highlights as Map<string, unknown> | undefined
    if (!marks) return
    marks.delete("match")
    const words = (text ?? "").trim().toLowerCase()
    if (!words || !inner.current) return
    const ranges: Range[] = []
    const walk = document.createTreeWalker(inner.current, NodeFilter.SHOW_TEXT)
    while (walk.nextNode() && ranges.length < 1000) {
      const node = walk.currentNode as Text, low = node.data.toLowerCase()
      for (let at = low.indexOf(words); at >= 0 && low.length === node.data.length; at = low.indexOf(words, at + words.length)) {
        const r = new Range()
        r.setStart(node, at)
        r.setEnd(node, at + words.length)
        ranges.push(r)
      }
    }
    marks.set("match", new (globalThis as any).Highlight(...ranges))
    return () => { marks.delete("match") }
  }, [text, win])
}
