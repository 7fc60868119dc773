sqlite3 -batch library.db <<'END'
create table raw (id text, title text, year text);
.mode csv
.import books.csv raw
create table books (id integer primary key, title text, year integer);
insert or ignore into books select id, title, year from raw where id <> 'id' order by rowid;
drop table raw;
.mode list
.once years.txt
select year, count(*) from books where year glob '[0-9][0-9][0-9][0-9]' group by year order by year;
END
