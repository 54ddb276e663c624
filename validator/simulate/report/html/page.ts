/** Whole pages: one HTML file without scripts and without other resources, in the reader's light or dark scheme. Pure. */
import { escapeHtml } from './text.ts';

/** Blue, orange, green, red, violet, brown, pink, grey: distinguishable with the usual colour blindness. */
const STYLE = `
:root{color-scheme:light dark;--fg:#1a1a1a;--bg:#fff;--soft:#5a5a5a;--grid:#dcdcdc;--box:#f4f4f4;
--c0:#0060a8;--c1:#b85a00;--c2:#00795c;--c3:#b3002d;--c4:#6a3d9a;--c5:#7a4a21;--c6:#a8327a;--c7:#5f6368}
@media (prefers-color-scheme:dark){:root{--fg:#e8e8e8;--bg:#16181c;--soft:#a9adb3;--grid:#3a3d42;--box:#22252a;
--c0:#5cb3ff;--c1:#ffa24d;--c2:#4fd1a8;--c3:#ff7b93;--c4:#c3a1f0;--c5:#d8a878;--c6:#f08cc6;--c7:#b7bbc0}}
body{font:16px/1.5 system-ui,sans-serif;color:var(--fg);background:var(--bg);max-width:60rem;margin:0 auto;padding:1rem}
h1{font-size:1.6rem}h2{font-size:1.2rem;margin-top:2.5rem}h3{font-size:1rem;max-width:48rem}p{max-width:48rem}a{color:var(--c0)}
figure{margin:0}figcaption{color:var(--soft);font-size:.9rem}svg{max-width:100%;height:auto;font-size:12px}
.narrow{display:none}@media(max-width:600px){.wide{display:none}.narrow{display:block;max-width:26rem}body{padding:.75rem}h1{font-size:1.35rem}}
.line{fill:none;stroke-width:2}.grid{stroke:var(--grid)}text{fill:var(--soft)}.label{fill:var(--fg)}.axis{font-size:12px}
.mark{fill-opacity:.65}.band{fill:var(--c3);fill-opacity:.14}h1,h2,p,li{overflow-wrap:anywhere}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:.25rem 1.25rem;padding:0;margin:.5rem 0}
.scroll{overflow-x:auto}table{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums}
th,td{text-align:left;vertical-align:top;padding:.25rem .5rem;border-bottom:1px solid var(--grid)}td:first-child{min-width:7.5rem}th{background:var(--box)}
summary{cursor:pointer;color:var(--c0);padding:.25rem 0}pre{background:var(--box);padding:.75rem;overflow-x:auto;font-size:.85rem}
.passed{color:var(--c2)}.failed{color:var(--c3)}
${[0, 1, 2, 3, 4, 5, 6, 7]
  .map(
    (n) =>
      `.line.c${n}{stroke:var(--c${n});stroke-dasharray:${['0', '8 3', '2 3', '12 3 2 3', '5 5', '1 2', '14 4', '3 1'][n]}}.bar.c${n},.mark.c${n}{fill:var(--c${n})}`,
  )
  .join('')}`;

/** `body` is HTML. */
export function pageHtml(title: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${escapeHtml(title)}</title>
<style>${STYLE}</style>
</head>
<body>
<main>
${body}
</main>
</body>
</html>
`;
}
