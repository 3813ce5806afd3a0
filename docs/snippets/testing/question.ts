import assert from 'node:assert/strict'
import { callTool } from 'thinharness'
import { chooseSlot } from '../tools/question.js'

const chosen = await callTool(chooseSlot, { days: ['Monday', 'Friday'] }, { answer: { day: 'Friday' } })
assert.equal(chosen.content, 'The customer chose Friday.')
