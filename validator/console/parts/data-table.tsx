import { Fragment, type ReactNode } from 'react';

export type Column<Row> = {
  key: string;
  title: string;
  cell: (row: Row) => ReactNode;
  /** Aligns numbers at their end. */
  isNumber?: boolean;
};

type DataTableProps<Row> = {
  /** Names the table for screen readers. */
  caption: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  rowKey: (row: Row) => string;
  /** Content below an opened row; null for other rows. */
  detail?: (row: Row) => ReactNode;
};

/**
 * A table of one page of rows; the server selects and sorts them. On a phone, each row becomes a card. The first column
 * names the row.
 */
export function DataTable<Row>({ caption, columns, rows, rowKey, detail }: DataTableProps<Row>) {
  return (
    <table className="data">
      <caption className="hidden">{caption}</caption>
      <thead>
        <tr>
          {columns.map(({ key, title, isNumber }) => (
            <th key={key} scope="col" className={isNumber ? 'number' : undefined}>
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <Fragment key={rowKey(row)}>
            <tr>
              {columns.map((column, at) => (
                <Cell key={column.key} column={column} row={row} isName={at === 0} />
              ))}
            </tr>
            <Detail columns={columns.length}>{detail?.(row) ?? null}</Detail>
          </Fragment>
        ))}
      </tbody>
    </table>
  );
}

function Detail({ columns, children }: { columns: number; children: ReactNode }) {
  if (children === null) return null;
  return (
    <tr>
      <td colSpan={columns}>{children}</td>
    </tr>
  );
}

function Cell<Row>({ column, row, isName }: { column: Column<Row>; row: Row; isName: boolean }) {
  const { title, isNumber, cell } = column;
  const className = isNumber ? 'number' : undefined;
  return isName ? (
    <th scope="row" className={className} data-title={title}>
      {cell(row)}
    </th>
  ) : (
    <td className={className} data-title={title}>
      {cell(row)}
    </td>
  );
}

type PagerProps = {
  /** Number of the page, from 1. */
  page: number;
  hasNext: boolean;
  /** Number of entries on all pages, if the server counts them. */
  total?: number;
  onPage: (page: number) => void;
};

/** Moves between the pages of a list. Shown also on the only page, if the list has a total. */
export function Pager({ page, hasNext, total, onPage }: PagerProps) {
  if (page === 1 && !hasNext && total === undefined) return null;
  return (
    <div className="row pager">
      <button type="button" disabled={page <= 1} onClick={() => onPage(page - 1)}>
        Previous
      </button>
      <span>
        Page {page}
        {total === undefined
          ? null
          : ` · ${total.toLocaleString('en-US')} ${total === 1 ? 'entry' : 'entries'}`}
      </span>
      <button type="button" disabled={!hasNext} onClick={() => onPage(page + 1)}>
        Next
      </button>
    </div>
  );
}
