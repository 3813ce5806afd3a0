import { defineExtension } from 'thinharness'
import type { Extension } from 'thinharness'

type OutputFilter = ReturnType<NonNullable<Extension['output']>>

/** Hides keys such as `sk-SECRET1` from readers, also one that arrives in pieces. */
export function maskedKeys(): OutputFilter {
  const held = new Map<string, string>()
  const masked = (text: string): string => text.replaceAll(/sk-[A-Z0-9]{4,}/g, '[key]')
  return {
    text(piece, partId) {
      const all = (held.get(partId) ?? '') + piece
      const cut = all.search(/(?:s|sk|sk-[A-Z0-9]*)$/)
      held.set(partId, cut === -1 ? '' : all.slice(cut))
      return masked(cut === -1 ? all : all.slice(0, cut))
    },
    end(partId) {
      const rest = held.get(partId) ?? ''
      held.delete(partId)
      return masked(rest)
    },
  }
}

export const masking = defineExtension({ name: 'masking', output: maskedKeys })
