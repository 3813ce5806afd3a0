/** A page of the library. Your program would use a search service and the web. */
export interface Page {
  readonly url: string
  readonly title: string
  readonly text: string
}

export const PAGES: readonly Page[] = [
  {
    url: 'https://tea.example/oolong-storage',
    title: 'How to store oolong',
    text: 'Oolong keeps its aroma for two years in an opaque tin at 20 degrees, and for six months in paper.',
  },
  {
    url: 'https://tea.example/tins',
    title: 'Tins and their lids',
    text: 'A lid with a rubber seal lets in a tenth of the moisture of one without. Seals last about five years.',
  },
  {
    url: 'https://blog.example/my-teapot',
    title: 'My teapot and me',
    text: 'I bought a red teapot. It pours well. This page is not about storage.',
  },
]

/** The address of a page that is still listed but no longer exists. */
export const GONE = 'https://tea.example/old-storage-guide'

/** Pages that contain a word of the query, the best first. */
export function found(query: string, most: number): readonly Omit<Page, 'text'>[] {
  const words = query.toLowerCase().match(/\w{4,}/g) ?? []
  const hits = ({ title, text }: Page): number =>
    words.filter((word) => `${title} ${text}`.toLowerCase().includes(word)).length
  const listed = [...PAGES, { url: GONE, title: 'The old storage guide', text: '' }]
  return listed
    .filter((page) => hits(page) > 0)
    .sort((left, right) => hits(right) - hits(left))
    .slice(0, most)
    .map(({ url, title }) => ({ url, title }))
}
