/** The id of the person who is signed in: from your own session cookie. */
export function userOf(request: Request): string {
  return request.headers.get('x-user') ?? ''
}
