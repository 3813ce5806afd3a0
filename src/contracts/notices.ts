import type { ContentPart } from './entry.js'

/** Something that the harness tells the model beside the conversation. */
export interface Notice {
  /** What it is about; a notice of one key is told once a run. */
  readonly key: string
  readonly kind: 'limit_warning'
  readonly content: string
}

/** `<harness_notice kind="KIND">`, the content, and the closing tag, each on lines of their own. */
export function renderNotice(notice: { readonly kind: string; readonly content: string }): string {
  return `<harness_notice kind="${notice.kind}">\n${notice.content}\n</harness_notice>`
}

/** Several notices as one text; empty when there are none. */
export function renderNotices(notices: readonly Notice[]): string {
  return notices.map(renderNotice).join('\n\n')
}

/** `content` with the notices behind it. */
export function withNotices(content: readonly ContentPart[], notices: readonly Notice[]): readonly ContentPart[] {
  return notices.length === 0 ? content : withText(content, renderNotices(notices))
}

/** `content` with `text` behind it: after a blank line in its last text part, where it ends in one. */
export function withText(content: readonly ContentPart[], text: string): readonly ContentPart[] {
  const last = content.at(-1)
  if (last?.type !== 'text') return [...content, { type: 'text', text }]
  return [...content.slice(0, -1), { type: 'text', text: `${last.text}\n\n${text}` }]
}
