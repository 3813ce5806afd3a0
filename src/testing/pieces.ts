/** Cut where a model's tokens might be: in words, those over 12 characters again. Never inside a surrogate pair. */
const PIECE = /\s*\S{1,12}|\s+/gu

/** A text in the pieces in which it is streamed; joined they are the text. */
export function piecesOf(text: string): readonly string[] {
  return text.match(PIECE) ?? []
}
