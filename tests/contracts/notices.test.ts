import { describe, expect, test } from 'vitest'
import { renderNotice, renderNotices, withNotices, withText } from '#contracts/notices.js'

const one = { key: 'a', kind: 'limit_warning', content: 'One left.' } as const
const none = { key: 'b', kind: 'limit_warning', content: 'None left.' } as const
const image = { type: 'image', url: 'https://example.com/a.png' } as const
const ONE = '<harness_notice kind="limit_warning">\nOne left.\n</harness_notice>'
const NONE = '<harness_notice kind="limit_warning">\nNone left.\n</harness_notice>'

describe('notices', () => {
  test('PR-02 notices are rendered on separate lines, with a blank line between them', () => {
    expect(renderNotice(one)).toBe(ONE)
    expect(renderNotices([one, none])).toBe(`${ONE}\n\n${NONE}`)
    expect(renderNotices([])).toBe('')
  })

  test('PR-02 notices follow the last text, or form a part of their own if the content ends without one', () => {
    const text = { type: 'text', text: 'Go.' } as const
    expect(withNotices([text], [one])).toEqual([{ type: 'text', text: `Go.\n\n${ONE}` }])
    expect(withNotices([text, image], [one])).toEqual([text, image, { type: 'text', text: ONE }])
    expect(withNotices([], [one])).toEqual([{ type: 'text', text: ONE }])
    expect(withText([image, text], 'More.')).toEqual([image, { type: 'text', text: 'Go.\n\nMore.' }])
  })

  test('PR-02 without notices the content is unchanged', () => {
    const content = [image]
    expect(withNotices(content, [])).toBe(content)
  })
})
