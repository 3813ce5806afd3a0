import type { ContentPart } from './entry.js'

/** A message from the harness to the model, in addition to the conversation. */
export interface HarnessNotice {
  /** Its subject; a notice of one key is sent once per run. */
  readonly key: string
  readonly kind: 'limit_warning'
  readonly content: string
}

/** `<harness_notice kind="KIND">`, the content, and the closing tag, each on lines of their own. */
export function renderNotice(notice: { readonly kind: string; readonly content: string }): string {
  return `<harness_notice kind="${notice.kind}">\n${notice.content}\n</harness_notice>`
}

/** Several notices as one text; empty when there are none. */
export function renderNotices(notices: readonly HarnessNotice[]): string {
  return notices.map(renderNotice).join('\n\n')
}

/** `content` followed by the notices. */
export function withNotices(
  content: readonly ContentPart[],
  notices: readonly HarnessNotice[],
): readonly ContentPart[] {
  return notices.length === 0 ? content : withText(content, renderNotices(notices))
}

/** `content` followed by `text`: after a blank line in its last text part, if it ends in one. */
export function withText(content: readonly ContentPart[], text: string): readonly ContentPart[] {
  const last = content.at(-1)
  if (last?.type !== 'text') return [...content, { type: 'text', text }]
  return [...content.slice(0, -1), { type: 'text', text: `${last.text}\n\n${text}` }]
}
