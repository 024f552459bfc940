//! dev
use shieling::policy::*;
fn split(s:&str)->Vec<String>{ let mut v=vec![];let mut cur=String::new();let mut q=None;let mut any=false; for c in s.chars(){match (q,c){(None,'\''|'"')=>{q=Some(c);any=true}(Some(a),b) if a==b=>q=None,(None,' ')=>{if any||!cur.is_empty(){v.push(std::mem::take(&mut cur));any=false}}(_,c)=>cur.push(c)}} if any||!cur.is_empty(){v.push(cur)} v}
fn policy(o:&str)->Policy{ let v=split(o); let (mut a,mut d,mut i)=(vec![],vec![],vec![]); let mut p=Policy::open(); let mut k=0; while k<v.len(){ match v[k].as_str(){"--readonly"=>p=p.with_readonly(),"--allow"=>{k+=1;a.push(v[k].clone())}"--deny"=>{k+=1;d.push(v[k].clone())}"--ignore"=>{k+=1;i.push(v[k].clone())}"--policy"=>{k+=1;p=p.with_preset(&v[k]).unwrap()} "readonly"=>p=p.with_readonly(), x=>panic!("{x}")} k+=1;} p.with_allow(&a).unwrap().with_deny(&d).unwrap().with_ignore(&i).unwrap()}
fn unesc(s:&str)->String{ let mut o=String::new(); let mut it=s.chars().peekable(); while let Some(c)=it.next(){ if c!='\\'{o.push(c);continue} match it.next(){Some('n')=>o.push('\n'),Some('t')=>o.push('\t'),Some('r')=>o.push('\r'),Some('0')=>o.push('\0'),Some('\\')=>o.push('\\'),Some('x')=>{let h:String=it.by_ref().take(2).collect();o.push(u8::from_str_radix(&h,16).unwrap() as char)},Some('u')=>{it.next();let h:String=it.by_ref().take_while(|c|*c!='}').collect();o.push(char::from_u32(u32::from_str_radix(&h,16).unwrap()).unwrap())},Some(x)=>{o.push('\\');o.push(x)},None=>{}} } o}
fn main(){
 let facts=Facts::new("/work/repo".as_ref(),"/work/repo".as_ref()).with_home(Some("/home/user"));
 for f in std::env::args().skip(1){
  let t=std::fs::read_to_string(&f).unwrap(); let mut pol=Policy::open(); let mut ps=String::new(); let mut class=String::new(); let (mut ok,mut ben,mut att,mut bad)=(0,0,0,0);
  let mut lines=t.lines();
  while let Some(l)=lines.next(){
   if l.starts_with('#')||l.trim().is_empty(){continue}
   if let Some(o)=l.strip_prefix("@policy "){ps=o.into();pol=policy(o);continue}
   if let Some(o)=l.strip_prefix("@class "){class=o.into();continue}
   let (kind,text)= if let Some((k,tag))=l.split_once("<<").filter(|(k,_)|matches!(*k,"must_allow"|"must_deny"|"denied")){ let mut b=vec![]; for x in lines.by_ref(){ if x==tag{break} b.push(x)} (k.to_string(),b.join("\n")) } else { let (k,t)=l.split_once(':').unwrap(); let t=t.strip_prefix(' ').unwrap_or(t); if let Some(k)=k.strip_suffix('$'){(k.to_string(),unesc(t))}else{(k.to_string(),t.to_string())} };
   let v=pol.judge_text(&text,&facts);
   let good=match kind.as_str(){"must_allow"=>{ben+=1;v.decision==Decision::Allow}"must_deny"=>{att+=1;v.decision!=Decision::Allow}"denied"=>{att+=1;v.decision==Decision::Deny}x=>panic!("{x}")};
   if good{ok+=1}else{bad+=1;println!("{kind} [{class}] {{{ps}}}: {text}\n      got {:?} {}",v.decision,v.reasons.iter().map(|r|format!("{}: `{}` {}",r.rule,r.object,r.because)).collect::<Vec<_>>().join(" | "))}
  }
  println!("== {f}: {ok} ok, {bad} bad of {ben} benign {att} attacks");
 }
}
