import { type FormEvent, useId, useState } from 'react';

/** Searches a list on the server when the form is sent. `value` is the search in the address. */
export function SearchField(props: {
  label: string;
  value: string;
  onSearch: (text: string) => void;
}) {
  const { label, value, onSearch } = props;
  const [text, setText] = useState(value);
  const id = useId();
  const submit = (event: FormEvent) => {
    event.preventDefault();
    onSearch(text.trim());
  };
  return (
    <form className="row" onSubmit={submit}>
      <label htmlFor={id}>{label}</label>
      <input
        id={id}
        type="search"
        maxLength={100}
        value={text}
        onChange={({ target }) => setText(target.value)}
      />
      <button type="submit">Search</button>
    </form>
  );
}
