import { useState } from 'react';

const KEY = 'podwright.theme';
const THEMES = ['system', 'light', 'dark'] as const;
type Theme = (typeof THEMES)[number];

/** Applies the chosen theme; called before the first render, so that the page does not flash. */
export function applyTheme(theme: Theme = storedTheme()): void {
  document.documentElement.dataset['theme'] = theme;
}

function storedTheme(): Theme {
  const stored = window.localStorage.getItem(KEY);
  return THEMES.find((theme) => theme === stored) ?? 'system';
}

export function ThemeSelect() {
  const [theme, setTheme] = useState(storedTheme);
  const choose = (name: string) => {
    const chosen = THEMES.find((each) => each === name) ?? 'system';
    window.localStorage.setItem(KEY, chosen);
    applyTheme(chosen);
    setTheme(chosen);
  };
  return (
    <label className="row small">
      <span>Theme</span>
      <select aria-label="Theme" value={theme} onChange={({ target }) => choose(target.value)}>
        {THEMES.map((each) => (
          <option key={each} value={each}>
            {each}
          </option>
        ))}
      </select>
    </label>
  );
}
