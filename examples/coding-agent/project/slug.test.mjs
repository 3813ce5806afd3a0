import assert from 'node:assert/strict'
import test from 'node:test'
import { slug } from './slug.mjs'

test('words become lower case, with a hyphen between them', () => {
  assert.equal(slug('Oolong Tea'), 'oolong-tea')
})

test('signs at the ends and between words leave one hyphen, or none', () => {
  assert.equal(slug('  Tea, fresh & cheap!  '), 'tea-fresh-cheap')
})
