/** The last part of an address, made of a title. */
export function slug(title) {
  return title.toLowerCase().replaceAll(' ', '-')
}
