export interface Review {
  readonly id: number
  readonly text: string
}

const OPENINGS = ['I ordered in May.', 'My third order.', 'A present for my sister.', 'Found you by chance.'] as const
const BODIES = [
  'The teapot arrived with a crack in its lid.',
  'The parcel came two weeks late.',
  'I got green tea instead of the oolong that I had ordered.',
  'The new Assam is bitter, and the old one was not.',
  'The best Darjeeling that I have had in years.',
] as const
const ENDINGS = ['', 'Please answer soon!', 'I have written twice before.', 'Thank you.'] as const

/** So many reviews, always the same. Replace this with your rows: lines of a file, or the answer of a database. */
export function reviews(count: number): readonly Review[] {
  return Array.from({ length: count }, (_, index) => {
    const parts = [pick(OPENINGS, index), pick(BODIES, index * 7 + (index >> 3)), pick(ENDINGS, index >> 2)]
    return { id: index + 1, text: parts.filter((part) => part !== '').join(' ') }
  })
}

function pick(texts: readonly string[], index: number): string {
  return texts[index % texts.length] ?? ''
}
