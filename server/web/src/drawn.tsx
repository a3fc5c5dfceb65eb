// What no session has yet, as the server draws it: an answer that arrives, a call that waits.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks"
import { post } from "./api"

/** trusted marks HTML that the server made of a session. This is the one place where text becomes
 * elements, and render/html of the server is the one place that makes such text. */
const trusted: { createHTML(s: string): string } =
  (globalThis as any).trustedTypes?.createPolicy("coppice", { createHTML: (s: string) => s }) ?? { createHTML: (s: string) => s }

/** useTrusted is HTML for an element. It stays the same while the text does: another one would be
 * drawn again, and fold what was unfolded. */
export const useTrusted = (html: string) => useMemo(() => ({ __html: trusted.createHTML(html) as string }), [html])

export type Drawable = { content: unknown[] } | { edits: unknown[] }

export const textOf = (content: string) => ({ type: "text", text: { content } })

/** useDrawn is the HTML of something that changes often. One request is under way at a time, so a
 * slow server gets few. */
function useDrawn(what: Drawable): string | undefined {
  const [html, set] = useState<string>()
  const st = useRef({ wanted: "", asked: "", busy: false, left: false }).current
  const ask = async () => {
    if (st.busy || st.wanted === st.asked || st.left) return
    st.busy = true
    st.asked = st.wanted
    const began = performance.now()
    await post<{ html: string }>("/web/html", JSON.parse(st.asked)).then((r) => { if (!st.left) set(r.html) }, () => {})
    await new Promise((r) => setTimeout(r, Math.max(40, performance.now() - began)))
    st.busy = false
    void ask()
  }
  st.wanted = JSON.stringify(what)
  useEffect(() => { void ask() }, [st.wanted])
  useEffect(() => { st.left = false; return () => { st.left = true } }, [])
  return html
}

type DrawnProps = { what: Drawable, before?: string, class?: string, unfolded?: boolean }

/** Drawn shows something as the server draws it, and before it has as it is. */
export function Drawn({ what, before, class: of = "body", unfolded }: DrawnProps) {
  const html = useDrawn(what), box = useRef<HTMLDivElement>(null)
  useLayoutEffect(() => { if (unfolded) box.current?.querySelectorAll("details").forEach((d) => { d.open = true }) }, [html])
  const inner = useTrusted(html ?? "")
  if (html === undefined) return before === undefined ? null : <div class={of + " asis"} dir="auto">{before}</div>
  return <div ref={box} class={of} dangerouslySetInnerHTML={inner} />
}
