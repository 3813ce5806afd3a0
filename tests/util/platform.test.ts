import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { afterEach, expect, test, vi } from 'vitest'
import { absolutePath, environment, moduleOrStub, nodeModule, warn } from '../../src/util/platform/node.js'
import { portableSha256, sha256 } from '../../src/util/platform/sha256.js'

afterEach(() => {
  vi.unstubAllGlobals()
  vi.restoreAllMocks()
})

test('the portable SHA-256 is that of Node, for any text', () => {
  const expected = (text: string): string => createHash('sha256').update(text).digest('hex')
  for (let length = 0; length < 200; length++)
    expect(portableSha256('é'.repeat(length))).toBe(expected('é'.repeat(length)))
  fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => portableSha256(text) === expected(text)))
  expect(sha256('abc')).toBe(expected('abc'))
})

test('without a process there are no modules, no variables and no paths; a stub names what is missing', () => {
  expect(nodeModule('node:path')?.sep).toBeDefined()
  vi.stubGlobal('process', undefined)
  expect(nodeModule('node:path')).toBeUndefined()
  expect(environment('PATH')).toBeUndefined()
  expect(absolutePath('notes')).toBe('notes')
  expect(sha256('abc')).toMatch(/^ba7816bf/)
  const { readFileSync } = moduleOrStub('node:fs')
  expect(() => readFileSync('a')).toThrow(
    'This runtime has no `node:fs`: this part of thinharness needs Node, Deno or Bun.',
  )
  const warned = vi.spyOn(console, 'warn').mockImplementation(() => undefined)
  warn('Look out.', 'SomeWarning')
  expect(warned).toHaveBeenCalledWith('SomeWarning: Look out.')
})

test('a variable that may not be read counts as not set', () => {
  const env = new Proxy(
    {},
    {
      get: () => {
        throw new Error('Requires env access.')
      },
    },
  )
  vi.stubGlobal('process', { env })
  expect(environment('THINHARNESS_MODEL')).toBeUndefined()
})
