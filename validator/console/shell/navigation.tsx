import { useState } from 'react';
import { Link, useLocation } from 'wouter';
import { type NavGroup, type PageRoute, ROUTES } from '../routes.tsx';
import { useVisible } from './audiences.tsx';
import { sectionOf } from './section.ts';

const GROUPS: readonly NavGroup[] = ['Rent', 'Account', 'Provide', 'Validator', 'Operate'];

/** Links to the pages that the visitor may see. On a phone, a button opens them. */
export function Navigation() {
  const [isOpen, setIsOpen] = useState(false);
  const [path] = useLocation();
  const shown = useVisible(ROUTES);
  const current = sectionOf(
    shown.map((route) => route.path),
    path,
  );
  if (shown.length === 0) return null;
  return (
    <nav className="nav" aria-label="Pages">
      <button
        type="button"
        className="nav-toggle"
        aria-expanded={isOpen}
        onClick={() => setIsOpen(!isOpen)}
      >
        Menu
      </button>
      <div className={isOpen ? 'nav-groups open' : 'nav-groups'}>
        {GROUPS.map((group) => (
          <Group
            key={group}
            group={group}
            routes={shown.filter((route) => route.group === group)}
            current={current}
            onChoose={() => setIsOpen(false)}
          />
        ))}
      </div>
    </nav>
  );
}

type GroupProps = {
  group: NavGroup;
  routes: readonly PageRoute[];
  /** Path of the section of the open page. */
  current: string | null;
  onChoose: () => void;
};

function Group({ group, routes, current, onChoose }: GroupProps) {
  if (routes.length === 0) return null;
  return (
    <section>
      <h2>{group}</h2>
      <ul>
        {routes.map((route) => (
          <li key={route.path}>
            <Link
              href={route.path}
              aria-current={route.path === current ? 'page' : undefined}
              onClick={onChoose}
            >
              {route.title}
            </Link>
          </li>
        ))}
      </ul>
    </section>
  );
}
