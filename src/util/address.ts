/** A text in which addresses have no user name and password: `https://ann:pw@host/a` becomes `https://***@host/a`. */
export function withoutCredentials(text: string): string {
  return text.replace(/:\/\/[^\s/?#"'`<>]*@/g, '://***@')
}
