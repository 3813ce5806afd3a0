import { expect, test, vi } from 'vitest'
import { harness } from '../../docs/snippets/provenance/rules.js'

test('docs/provenance.md: the description lists the tools that need no approval', async () => {
  const printed: unknown[] = []
  vi.spyOn(console, 'log').mockImplementation((value: unknown) => void printed.push(value))

  await import('../../docs/snippets/provenance/describe.js')
  vi.restoreAllMocks()
  await harness.close()

  expect(printed).toEqual([expect.stringContaining('          hosts *.example.com'), ['write', 'edit']])
})
