// Light or dark: as the system has it, or as one wants. It is remembered in the browser.
import { useState } from "preact/hooks"

export type Theme = "auto" | "light" | "dark"
export const themes: Record<Theme, { words: string, sign: string, next: Theme }> = {
  auto: { words: "as the system has them", sign: "◐", next: "light" }, light: { words: "light", sign: "○", next: "dark" }, dark: { words: "dark", sign: "●", next: "auto" },
}

const key = "coppice-theme"
const kept = (): Theme => { const t = localStorage.getItem(key); return t === "light" || t === "dark" ? t : "auto" }

function wear(t: Theme) {
  if (t === "auto") delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = t
}
wear(kept()) // before anything is drawn

export function useTheme(): [Theme, () => void] {
  const [theme, set] = useState(kept)
  return [theme, () => {
    const next = themes[theme].next
    localStorage.setItem(key, next)
    wear(next)
    set(next)
  }]
}
