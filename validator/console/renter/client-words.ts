/** Names the browser and the system of a session from the header `User-Agent`. Pure. */

/** Browsers with the token of their version. Most also claim to be Chrome and Safari, so the first match counts. */
const BROWSERS: readonly (readonly [name: string, version: RegExp])[] = [
  ['Edge', /\bEdg(?:e|A|iOS)?\/(\d+)/],
  ['Opera', /\bOPR\/(\d+)/],
  ['Samsung Internet', /\bSamsungBrowser\/(\d+)/],
  ['Firefox', /\b(?:Firefox|FxiOS)\/(\d+)/],
  ['Chrome', /\b(?:Headless)?Chrom(?:e|ium)\/(\d+)/],
  ['Chrome', /\bCriOS\/(\d+)/],
  ['Safari', /\bVersion\/(\d+)\S* .*Safari\//],
];

const SYSTEMS: readonly (readonly [name: string, token: RegExp])[] = [
  ['iPhone', /\biPhone\b/],
  ['iPad', /\biPad\b/],
  ['Android', /\bAndroid\b/],
  ['ChromeOS', /\bCrOS\b/],
  ['Windows', /\bWindows\b/],
  ['macOS', /\bMacintosh\b/],
  ['Linux', /\bLinux\b/],
];

/** A program that names itself first, such as `curl/8.5.0`. */
const PROGRAM = /^([\w.-]+)\/(\S+)/;

/** Returns for example `Firefox 140 on Linux` or `curl 8.5.0`; the text itself if it has no known form. */
export function clientWords(userAgent: string): string {
  const system = SYSTEMS.find(([, token]) => token.test(userAgent))?.[0];
  for (const [name, version] of BROWSERS) {
    const [, major] = version.exec(userAgent) ?? [];
    if (major !== undefined)
      return system === undefined ? `${name} ${major}` : `${name} ${major} on ${system}`;
  }
  const [, program, version] = PROGRAM.exec(userAgent) ?? [];
  return program === undefined || program === 'Mozilla' ? userAgent : `${program} ${version}`;
}
