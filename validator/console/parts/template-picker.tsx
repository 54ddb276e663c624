import { useState } from 'react';
import type { TemplateResponse } from '../api/api.gen.ts';
import { useApi } from '../session/queries.tsx';
import { QueryContent } from './panel.tsx';
import { useSettled } from './use-settled.tsx';

/** Templates that the list shows at once; the server searches all of them. */
const SHOWN = 50;
const OWNERS = { all: 'All', official: 'Official', own: 'Your own', shared: 'Of other accounts' };
type Owner = keyof typeof OWNERS;

type TemplatePickerProps = {
  /** Id of the chosen template; empty without a choice. */
  chosenId: string;
  onChoose: (template: TemplateResponse) => void;
  /** A template that is not offered. */
  exceptId?: string | null;
};

/** A choice of one template, which the server searches. */
export function TemplatePicker({ chosenId, onChoose, exceptId = null }: TemplatePickerProps) {
  const [search, setSearch] = useState('');
  const [owner, setOwner] = useState<Owner>('all');
  const templates = useApi('GET /templates', {
    query: {
      q: useSettled(search.trim()),
      limit: SHOWN,
      ...(owner === 'all' ? {} : { owner }),
    },
  });
  const offered = (rows: readonly TemplateResponse[]) => rows.filter(({ id }) => id !== exceptId);
  return (
    <fieldset className="choices">
      <legend>Template</legend>
      <div className="row">
        <input
          type="search"
          aria-label="Search templates"
          placeholder="Name or image"
          maxLength={100}
          value={search}
          onChange={({ target }) => setSearch(target.value)}
          onKeyDown={(event) => {
            // The search is part of a form, which Enter would send.
            if (event.key === 'Enter') event.preventDefault();
          }}
        />
        <select
          aria-label="Owner of the templates"
          value={owner}
          onChange={({ target }) => setOwner(target.value as Owner)}
        >
          {Object.entries(OWNERS).map(([value, label]) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        </select>
      </div>
      <QueryContent
        query={templates}
        isEmpty={(rows) => offered(rows).length === 0}
        empty="No template matches. Change the search, or create one under Templates."
      >
        {(rows) => (
          <>
            <ul className="plain">
              {offered(rows).map((template) => (
                <li key={template.id}>
                  <label>
                    <input
                      type="radio"
                      name="template"
                      checked={template.id === chosenId}
                      onChange={() => onChoose(template)}
                    />
                    <span>
                      {template.name} <span className="small faint">{imageOf(template)}</span>
                    </span>
                  </label>
                </li>
              ))}
            </ul>
            {rows.length < SHOWN ? null : (
              <p className="hint">The first {SHOWN} are shown. Search for the others.</p>
            )}
          </>
        )}
      </QueryContent>
    </fieldset>
  );
}

function imageOf({ docker_image: image, docker_image_tag: tag }: TemplateResponse): string {
  return tag === '' ? image : `${image}:${tag}`;
}
