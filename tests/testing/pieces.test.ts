import fc from 'fast-check'
import { expect, test } from 'vitest'
import { textPieces } from '#testing/reply.js'
import { isSealed, sealText } from '#testing/wire/seals.js'

const anyText = fc.string({ unit: 'binary', maxLength: 200 })

test('the pieces of any text add up to it, none empty, none splitting a character', () => {
  fc.assert(
    fc.property(anyText, (text) => {
      const pieces = textPieces(text)
      expect(pieces.join('')).toBe(text)
      for (const piece of pieces) {
        expect(piece).not.toBe('')
        expect(piece).not.toMatch(/^[\uDC00-\uDFFF]|[\uD800-\uDBFF]$/)
      }
    }),
  )
})

test('a text is cut into words, and long words again', () => {
  expect(textPieces('To be, or not.\n')).toEqual(['To', ' be,', ' or', ' not.', '\n'])
  expect(textPieces('a'.repeat(30)).map((piece) => piece.length)).toEqual([12, 12, 6])
  expect(textPieces('')).toEqual([])
})

test('a sealed value is recognized, and nothing else', () => {
  fc.assert(
    fc.property(anyText, anyText, (text, other) => {
      expect(isSealed(sealText(text))).toBe(true)
      expect(isSealed(`${sealText(text)}${other}`)).toBe(other === '')
      expect(isSealed(other)).toBe(false)
    }),
  )
})
