import { Link } from 'wouter';

export type LinkTab = { key: string; title: string; path: string };

/** Tabs that are pages: each has an address, and works with the browser's history. */
export function LinkTabs({
  label,
  tabs,
  current,
}: {
  label: string;
  tabs: readonly LinkTab[];
  current: string;
}) {
  return (
    <nav className="tabs" aria-label={label}>
      {tabs.map(({ key, title, path }) => (
        <Link key={key} href={path} aria-current={key === current ? 'page' : undefined}>
          {title}
        </Link>
      ))}
    </nav>
  );
}
