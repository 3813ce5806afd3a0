import { expect, test } from 'vitest'
import { lateFormat } from '#providers/http/wire-format.js'
import { late } from '#util/late.js'
import type { WireFormat } from '#providers/http/wire-format.js'
import { responsesFormat } from '#providers/openai/request.js'
import { RESPONSES } from '#providers/openai/models.js'

const whole = responsesFormat('gpt-5')

/** A module that counts how often it is imported; the imports before `fails` fail. */
function module({ fails = 0 } = {}) {
  let imports = 0
  const source = late(async () => {
    imports += 1
    await Promise.resolve()
    if (imports <= fails) throw new Error('Too many open files.')
    return { formatOf: (): WireFormat => whole }
  })
  return { source, imports: () => imports, format: () => lateFormat(RESPONSES, source, ({ formatOf }) => formatOf()) }
}

test('a format is what is known of it until it is loaded, and then whole', async () => {
  const { format: made, imports } = module()
  const format = made()
  expect(imports()).toBe(0)
  expect(Object.keys(format)).toEqual([...Object.keys(RESPONSES), 'load'])
  await Promise.all([format.load?.(), format.load?.()])
  expect(imports()).toBe(1)
  expect(format).toEqual({ ...whole, load: undefined })
})

test('a format is made at once if its module is loaded', async () => {
  const { format, imports } = module()
  await format().load?.()
  expect(format()).toBe(whole)
  expect(imports()).toBe(1)
})

test('a format that could not be loaded is loaded by the next request', async () => {
  const { format: made } = module({ fails: 1 })
  const format = made()
  await expect(format.load?.()).rejects.toThrow('Too many open files.')
  await format.load?.()
  expect(format).toHaveProperty('head', Reflect.get(whole, 'head'))
})
